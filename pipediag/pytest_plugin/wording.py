"""What a test that does not pass says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pipediag.encoding.terminal import one_line, printable
from pipediag.facts.order import culprit_place
from pipediag.gate.result import Check, GateResult
from pipediag.session.model import Session
from pipediag.session.source import SourceExcerpt

AROUND = 2
"""Lines of source above and below the one that is meant. Own choice."""

_OPTION = "(--steps)"
_ARGUMENT = "(`steps=`)"
"""How a test asks for what the command's option asks for."""


def failed(session: Session, gate: GateResult, report: Path | str) -> str:
    """What is over its limit, and what a person needs to act on it, several lines."""
    return printable("\n".join(_failed(session, gate, report)))


def undecided(gate: GateResult, report: Path | str) -> str:
    """Why nothing can be said, one line: that is all that pytest shows of a skipped test."""
    sentences = [check.sentence.replace(_OPTION, _ARGUMENT) for check in gate.undecided]
    return one_line(" ".join(["Inconclusive.", *sentences, _report(report)]))


def disturbed(busy: str, gate: GateResult, report: Path | str) -> str:
    """The same, where other programs used the CPUs."""
    sentences = [check.sentence for check in gate.checks]
    return one_line(" ".join(["Inconclusive.", busy, "Measured:", *sentences, _report(report)]))


def taken(wait_s: float) -> str:
    """The same, where others measured all the time."""
    return (
        f"Other processes have measured on this machine for {wait_s:g} s, and two at once would "
        "spoil each other, so nothing was measured. Use fewer workers, or set pipediag_wait_s."
    )


def _failed(session: Session, gate: GateResult, report: Path | str) -> Iterator[str]:
    broken = [check for check in gate.checks if check.outcome == "fail"]
    if gate.script_failure is not None:
        yield gate.script_failure
    for check in broken:
        yield check.sentence
        yield from (f"  {line}" for line in check.diff_lines)
    verdict = session.verdict
    yield f"Verdict: {verdict.summary} ({verdict.confidence} confidence)"
    yield from _source(session, broken)
    if verdict.next_steps:
        yield f"Do first: {verdict.next_steps[0]}"
    yield _report(report)


def _source(session: Session, broken: list[Check]) -> Iterator[str]:
    """The line that the verdict is about, with its neighbours; without them, where it is."""
    excerpt = session.verdict.source
    if excerpt is not None:
        yield f"{_path(excerpt.file)}:{excerpt.line}"
        yield from _lines(excerpt)
        return
    place = culprit_place(session)
    if place is not None:
        yield f"{_path(place.file)}:{place.line}" if place.line else _path(place.file)
        return
    placed = next(filter(None, (check.location for check in broken)), None)
    if placed is not None:
        yield placed


def _lines(excerpt: SourceExcerpt) -> Iterator[str]:
    for number, text in enumerate(excerpt.lines, start=excerpt.first_line):
        if abs(number - excerpt.line) <= AROUND:
            mark = ">" if number == excerpt.line else " "
            yield f"{mark} {number:5}  {text}".rstrip()


def _report(report: Path | str) -> str:
    """Where it is, or the sentence that says why there is none."""
    if isinstance(report, str):
        return report
    page = report / "report.html"
    return f"Report: {_path(str(page))}" if page.exists() else f"Session: {_path(str(report))}"


def _path(file: str) -> str:
    """As a person would type it here."""
    if not Path(file).is_absolute():
        return file
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
