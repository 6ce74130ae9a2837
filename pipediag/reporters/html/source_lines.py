"""The user's source on the page: a patch line by line, and the code with its time in the margin."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup, escape

from pipediag.encoding import applicable
from pipediag.facts.order import SourcePlace
from pipediag.facts.pipeline import delay_ms
from pipediag.facts.python_callables import python_behind
from pipediag.reporters.words.quantities import percent, seconds
from pipediag.session.findings import SourceExcerpt
from pipediag.session.model import Session

MOST_SHOWN = 9
"""Lines of the user's source on the first screen."""
_LONGEST_LINE = 200
_WORTH = 0.01
"""Part of the run from which on a line's seconds are shown."""

_GAP = "…"
"""Stands for lines that are left out."""


def brief_lines(diff: str) -> list[str]:
    """Return the changes of a diff, each with one line above and below it that says anything.

    Functions that are added come last, so that a short excerpt shows the lines that change.
    """
    lines = [line.removesuffix("\r") for line in applicable(diff).split("\n")[:-1]]
    lines = [line for line in lines if not line.startswith(("+++ ", "--- ", "\\"))]
    changed = {n for n, line in enumerate(lines) if line.startswith(("+", "-"))}
    places: list[list[str]] = [[]]
    for n, line in enumerate(lines):
        # Brackets alone tell nobody where a change stands.
        near = bool(changed & {n - 1, n + 1}) and any(map(str.isalnum, line))
        if n in changed or (near and line.startswith(" ")):
            places[-1].append(line.expandtabs(4)[:_LONGEST_LINE])
        else:
            places.append([])
    places = sorted(filter(None, places), key=_is_a_helper)
    return [line for place in places for line in (_GAP, *place)][1:]


def _is_a_helper(place: list[str]) -> bool:
    return len(place) > MOST_SHOWN and not any(line.startswith("-") for line in place)


@dataclass(frozen=True)
class SourceLine:
    number: int
    text: Markup
    """The call that is meant is marked."""
    cost: str
    cost_is: str
    """`time per step`, `share of stack samples`, ...; empty where none is known."""
    meant: bool
    after_gap: bool
    """True where lines between it and the one before are left out."""


@dataclass(frozen=True)
class SourceBlock:
    """Lines of one file, with what they cost."""

    file: str
    line: int
    lines: list[SourceLine]


def annotated(session: Session, culprit: SourcePlace | None) -> list[SourceBlock]:
    """Return the lines around the culprit, and around the Python behind it, with what each costs.

    The culprit's file shows the lines of the pipeline's other operations, too.
    """
    found: list[SourceBlock] = []
    if culprit is not None and culprit.line is not None:
        file, excerpt = culprit.file, session.verdict.source
        known = {
            op.line: op.code.strip()
            for op in session.ops
            if op.file == file and op.line and op.code
        }
        if excerpt is not None and excerpt.file == file:
            known |= _excerpt(excerpt)
        found += _block(session, file, culprit.line, known, excerpt)
    behind = python_behind(session)
    if behind is not None:
        excerpt = session.verdict.python_source
        near = {
            number: text
            for number, text in _excerpt(excerpt).items()
            if abs(number - behind.line) <= 1
        }
        found += _block(session, behind.file, behind.line, near, excerpt)
    return found


def _excerpt(excerpt: SourceExcerpt | None) -> dict[int, str]:
    if excerpt is None:
        return {}
    lines = [line.removesuffix("\r")[:_LONGEST_LINE] for line in excerpt.lines]
    return {excerpt.first_line + n: line for n, line in enumerate(lines)}


def _block(
    session: Session, file: str, meant: int, known: dict[int, str], excerpt: SourceExcerpt | None
) -> list[SourceBlock]:
    costs = _costs(session, file)
    nearest = sorted(
        # Brackets alone tell nobody where a line stands.
        (number for number in known if any(map(str.isalnum, known[number]))),
        key=lambda number: (number != meant, number not in costs, abs(number - meant)),
    )
    shown = sorted(nearest[:MOST_SHOWN])
    if meant not in shown:
        return []
    texts = [known[number] for number in shown if number in _excerpt(excerpt)]
    shared = min((len(text) - len(text.lstrip(" \t")) for text in texts), default=0)
    lines = [
        SourceLine(
            number,
            escape(known[number][shared if known[number][:1].isspace() else 0 :]),
            *costs.get(number, ("", "")),
            meant=number == meant,
            after_gap=n > 0 and number > shown[n - 1] + 1,
        )
        for n, number in enumerate(shown)
    ]
    return [SourceBlock(file, meant, lines)]


def margin_note(blocks: list[SourceBlock]) -> str:
    """Return what the margin shows: `In the margin: time per step.`"""
    known = dict.fromkeys(line.cost_is for block in blocks for line in block.lines if line.cost_is)
    return f"In the margin: {', or '.join(known)}." if known else ""


def _costs(session: Session, file: str) -> dict[int, tuple[str, str]]:
    """Return what each line of a file is known to cost: pipeline, else run, else stack samples."""
    found: dict[int, tuple[str, str]] = {}
    for hot in reversed(session.host.hot_python if session.host is not None else []):
        if hot.file == file:
            found[hot.line] = percent(hot.percent), "share of stack samples"
    run = session.run
    parts = [row for row in run.parts if row.part != "steps"] if run is not None else []
    for line in {row.line for row in parts if row.file == file and row.line is not None}:
        rows = [row for row in parts if (row.file, row.line) == (file, line)]
        spent = sum(row.seconds for row in rows)
        about = "~" if any(row.basis == "projected" for row in rows) else ""
        if run is not None and spent > _WORTH * run.whole_s:
            found[line] = f"{about}{seconds(spent)}", "time in the run (~: projected)"
    in_a_step: dict[int, float] = {}
    for op in session.ops:
        delay = delay_ms(session, op) if op.fused_into is None else None
        if op.file == file and op.line is not None and delay is not None:
            in_a_step[op.line] = in_a_step.get(op.line, 0.0) + delay
    steps = {
        line: (f"{spent:.{0 if spent >= 10 else 1 if spent >= 1 else 2}f} ms", "time per step")
        for line, spent in in_a_step.items()
    }
    return found | steps
