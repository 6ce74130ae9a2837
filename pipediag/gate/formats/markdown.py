"""The gate's results for a job summary or a comment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipediag.encoding import markdown
from pipediag.gate.limits import UNIT_WORDS, number
from pipediag.gate.result import Check, GateResult
from pipediag.gate.wording import (
    OUTCOMES_WORST_FIRST,
    diff_lines,
    location_in_checkout,
    overall,
    status_word,
)

LONGEST = 60_000
"""Characters of the tables. A comment on GitHub holds 65,536; a job summary holds a mebibyte, which
so many characters never fill in UTF-8."""

_HEADER = [
    "| Outcome | Check | Value | Interval | Limit | Where | What it says |",
    "|---|---|--:|--:|--:|---|---|",
]


def render(results: Sequence[GateResult]) -> str:
    """A table for each session and a closing line; where there is no room for all, the worst."""
    room = LONGEST
    shown: dict[int, list[str]] = {}
    left_out = 0
    for at, line in _worst_first(results):
        needed = _length([line] if at in shown else [*_head(results[at]), line, ""])
        if needed > room:
            left_out += 1
            continue
        room -= needed
        shown.setdefault(at, []).append(line)
    lines = ["## pipediag", ""]
    for at in sorted(shown):
        lines += [*_head(results[at]), *shown[at], ""]
        for block in _below(results[at]):
            if _length(block) <= room:
                room -= _length(block)
                lines += block
    if left_out:
        lines += [f"{left_out} more had no room here; `--format text` has them all.", ""]
    return "\n".join([*lines, overall(results), ""])


def _worst_first(results: Sequence[GateResult]) -> Iterator[tuple[int, str]]:
    """What stands under the heading of each session, with the session's number."""
    for at, result in enumerate(results):
        if result.script_failure is not None:
            yield at, markdown.text(result.script_failure)
    for outcome in OUTCOMES_WORST_FIRST:
        for at, result in enumerate(results):
            yield from ((at, _row(check)) for check in result.checks if check.outcome == outcome)


def _head(result: GateResult) -> list[str]:
    heading = markdown.heading(3, result.label, status_word(result))
    return [heading, "", *([] if result.script_failure is not None else _HEADER)]


def _below(result: GateResult) -> Iterator[list[str]]:
    """What stands below the table of a session, as far as there is room."""
    yield from ([markdown.text(note), ""] for note in result.notes)
    yield from filter(None, map(_diff, result.checks))


def _diff(check: Check) -> list[str]:
    """What makes up for the check, where it is known."""
    found = diff_lines(check)
    return [f"{markdown.text(check.name)}:", "", *markdown.code("diff", found), ""] if found else []


def _length(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _row(check: Check) -> str:
    unit = UNIT_WORDS[check.unit]
    low, high = (number(end, check.unit) for end in check.interval or (0.0, 0.0))
    cells = (
        check.outcome,
        check.name,
        "" if check.value is None else f"{number(check.value, check.unit)}{unit}",
        "" if check.interval is None else f"{low} to {high}{unit}",
        "" if check.limit is None else f"{check.limit:g}{unit}",
        location_in_checkout(check),
        check.sentence,
    )
    return markdown.row(cells)
