"""The gate's results for a job summary or a comment."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.encoding import markdown
from pipediag.gate.result import Check, GateResult
from pipediag.gate.wording import location, overall, status_word, worst_checks_first

_HEADER = [
    "| Outcome | Check | Value | 95 % interval | Limit | Where | What it says |",
    "|---|---|--:|--:|--:|---|---|",
]


def render(results: Sequence[GateResult]) -> str:
    """A table for each session and a closing line."""
    lines = ["## pipediag", ""]
    for result in results:
        lines += [markdown.heading(3, result.label, status_word(result)), "", *_body(result), ""]
    return "\n".join([*lines, overall(results), ""])


def _body(result: GateResult) -> list[str]:
    if result.script_failure is not None:
        return [markdown.text(result.script_failure)]
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
    return markdown.row(cells)
