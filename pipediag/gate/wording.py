"""What every form says in the same words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipediag.encoding.diff import applicable
from pipediag.errors import ExitStatus
from pipediag.facts.names import in_checkout
from pipediag.gate.result import Check, CheckOutcome, GateResult, worst_status

_STATUS_WORDS = {
    ExitStatus.DONE: "passed",
    ExitStatus.GATE_FAILED: "failed",
    ExitStatus.SCRIPT_FAILED: "not judged",
    ExitStatus.INCONCLUSIVE: "inconclusive",
}
_MOST_DIFF_LINES = 60
"""Of a change that stands below a check: what is longer is read in a file. Own choice."""
_LONGEST_DIFF = 8_000
"""Characters of the same."""
OUTCOMES_WORST_FIRST: tuple[CheckOutcome, ...] = ("fail", "warn", "inconclusive", "pass")


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
    if any(result.compared for result in results):
        return f"Gate: {word} (exit status {status.value}){_by(results, status)}."
    hit = sum(result.status is status for result in results)
    return f"Gate: {word} (exit status {status.value}): {hit} of {len(results)} sessions."


def _by(results: Sequence[GateResult], status: ExitStatus) -> str:
    """Whether a session's own checks or the baseline decided; empty where all came to the same."""
    hit = {result.compared for result in results if result.status is status}
    if hit == {result.compared for result in results}:
        return ""
    return " by the baseline" if True in hit else " by its own checks"


def worst_checks_first(result: GateResult) -> list[Check]:
    """The checks by outcome, the order of each outcome kept."""
    return sorted(result.checks, key=lambda check: OUTCOMES_WORST_FIRST.index(check.outcome))


def most_valuable_first(results: Sequence[GateResult]) -> list[tuple[GateResult, Check]]:
    """What did not pass, of all sessions: the worst outcome first, then what buys most.

    Forms that show only some of them show the first ones. What an earlier session has said of the
    same place, as repeats do, is not said again.
    """
    found: list[tuple[GateResult, Check]] = []
    said: set[tuple[object, ...]] = set()
    for result in results:
        told = [check for check in result.checks if check.outcome != "pass"]
        found += [(result, check) for check in told if _what(result, check) not in said]
        said.update(_what(result, check) for check in told)
    return sorted(found, key=lambda one: _rank(one[1]))


def _what(result: GateResult, check: Check) -> tuple[object, ...]:
    return result.script, check.outcome, check.name, check.file, check.line


def _rank(check: Check) -> tuple[int, float]:
    return OUTCOMES_WORST_FIRST.index(check.outcome), -(check.speedup or 1.0)


def location(check: Check) -> str:
    """`file:line`, as far as known; empty when not."""
    if check.file is None:
        return ""
    return check.file if check.line is None else f"{check.file}:{check.line}"


def diff_lines(check: Check) -> list[str]:
    """The change that makes up for the check; of a long one its beginning."""
    if check.diff is None:
        return []
    shown = check.diff.rstrip("\n")[:_LONGEST_DIFF].replace("\r\n", "\n")
    found = applicable(shown).expandtabs().split("\n")
    if len(found) <= _MOST_DIFF_LINES and len(check.diff) <= _LONGEST_DIFF:
        return found
    return [*found[:_MOST_DIFF_LINES], "…", "`pipediag fix` prints all of it."]


def location_in_checkout(check: Check) -> str:
    """The same from the repository's root, for what is read beside its files."""
    return location(check if check.file is None else replace(check, file=in_checkout(check.file)))
