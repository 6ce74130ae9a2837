"""The gate's results for a terminal or a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipediag.encoding.terminal import lines
from pipediag.gate.result import Check, GateResult
from pipediag.gate.wording import diff_lines, location, overall, status_word, worst_checks_first

_OUTCOME_WIDTH = len("INCONCLUSIVE")
_INDENT = " " * (_OUTCOME_WIDTH + 4)


def render(results: Sequence[GateResult]) -> str:
    """Every check of every session, the worst first, and a closing line."""
    said: list[str] = []
    for result in results:
        said += [f"{result.label}: {status_word(result)}", *_body(result), ""]
    return lines([*said, overall(results)])


def _body(result: GateResult) -> list[str]:
    if result.script_failure is not None:
        return [f"  {result.script_failure}"]
    checks = [line for check in worst_checks_first(result) for line in _lines(check)]
    return [*checks, *(f"  {note}" for note in result.notes)]


def _lines(check: Check) -> Iterator[str]:
    where = f" [{location(check)}]" if check.file else ""
    yield f"  {check.outcome.upper():{_OUTCOME_WIDTH}}  {check.name}{where}: {check.sentence}"
    yield from (f"{_INDENT}{line}" for line in diff_lines(check))
