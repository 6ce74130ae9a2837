"""The gate's results for a terminal or a log."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.encoding.terminal import lines
from pipediag.gate.result import Check, GateResult
from pipediag.gate.wording import location, overall, status_word, worst_checks_first

_OUTCOME_WIDTH = len("INCONCLUSIVE")


def render(results: Sequence[GateResult]) -> str:
    """Every check of every session, the worst first, and a closing line."""
    said: list[str] = []
    for result in results:
        said += [f"{result.label}: {status_word(result)}", *_body(result), ""]
    return lines([*said, overall(results)])


def _body(result: GateResult) -> list[str]:
    if result.script_failure is not None:
        return [f"  {result.script_failure}"]
    return [_line(check) for check in worst_checks_first(result)]


def _line(check: Check) -> str:
    where = f" [{location(check)}]" if check.file else ""
    return f"  {check.outcome.upper():{_OUTCOME_WIDTH}}  {check.name}{where}: {check.sentence}"
