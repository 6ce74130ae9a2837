"""What every form says in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.errors import ExitStatus
from pipediag.gate.result import Check, GateResult, worst_status

_STATUS_WORDS = {
    ExitStatus.DONE: "passed",
    ExitStatus.GATE_FAILED: "failed",
    ExitStatus.SCRIPT_FAILED: "not judged",
    ExitStatus.INCONCLUSIVE: "inconclusive",
}
_WORST_FIRST = ("fail", "warn", "inconclusive", "pass")


def status_word(result: GateResult) -> str:
    """One or two words; an inconclusive gate that was let pass still says so."""
    word = _STATUS_WORDS[result.status]
    if result.status is ExitStatus.DONE and result.undecided:
        return f"{word}, with inconclusive checks allowed"
    return word


def overall(results: Sequence[GateResult]) -> str:
    """The closing sentence over all sessions."""
    status = worst_status(results)
    word = _STATUS_WORDS[status]
    if len(results) == 1:
        return f"Gate: {status_word(results[0])} (exit status {status.value})."
    hit = sum(result.status is status for result in results)
    return f"Gate: {word} (exit status {status.value}): {hit} of {len(results)} sessions."


def worst_checks_first(result: GateResult) -> list[Check]:
    """The checks by outcome, the order of each outcome kept."""
    return sorted(result.checks, key=lambda check: _WORST_FIRST.index(check.outcome))


def location(check: Check) -> str:
    """`file:line`, as far as known; empty when not."""
    if check.file is None:
        return ""
    return check.file if check.line is None else f"{check.file}:{check.line}"
