"""The gate's results for a job summary or a comment."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.gate.formats.wording import location, overall, status_word, worst_checks_first
from pipediag.gate.result import Check, GateResult

_HEADER = [
    "| Outcome | Check | Value | 95 % interval | Limit | Where | What it says |",
    "|---|---|--:|--:|--:|---|---|",
]


def render_markdown(results: Sequence[GateResult]) -> str:
    """A table for each session and a closing line."""
    lines = ["## pipediag", ""]
    for result in results:
        lines += [f"### {_cell(result.label)}: {status_word(result)}", "", *_body(result), ""]
    return "\n".join([*lines, overall(results), ""])


def _body(result: GateResult) -> list[str]:
    if result.script_failure is not None:
        return [_cell(result.script_failure)]
    return [*_HEADER, *(_row(check) for check in worst_checks_first(result))]


def _row(check: Check) -> str:
    cells = (
        check.outcome,
        check.name,
        "" if check.value is None else f"{check.value:.1f} %",
        "" if check.interval is None else f"{check.interval[0]:.1f} to {check.interval[1]:.1f} %",
        "" if check.limit is None else f"{check.limit:g} %",
        location(check),
        check.sentence,
    )
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    """Text that neither ends the cell nor is read as markup."""
    escaped = text.replace("\\", "\\\\")
    for mark in "|`*_<>[]":
        escaped = escaped.replace(mark, f"\\{mark}")
    return " ".join(escaped.split())
