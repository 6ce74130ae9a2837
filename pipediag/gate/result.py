"""The gate's answer: one check for each limit or rule, one result for each script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pipediag.comparison.values import Unit
from pipediag.encoding.text import applicable
from pipediag.errors import ExitStatus
from pipediag.facts.names import in_checkout

CheckOutcome = Literal["pass", "fail", "warn", "inconclusive"]
Level = Literal["warn", "error"]

OUTCOMES_WORST_FIRST: tuple[CheckOutcome, ...] = ("fail", "warn", "inconclusive", "pass")
UNIT_WORDS: dict[Unit, str] = {
    "percent": " %",
    "ratio": "x",
    "us": " us",
    "ms": " ms",
    "s": " s",
}

_STATUS_WORDS = {
    ExitStatus.GATE_FAILED: "failed",
    ExitStatus.SCRIPT_FAILED: "not judged",
    ExitStatus.INCONCLUSIVE: "inconclusive",
    ExitStatus.DONE: "passed",
}
"""Worst first: a limit that was certainly broken comes before a run that could not be judged."""

_MOST_DIFF_LINES = 60
"""Lines of a diff that are shown below a check. Own choice."""
_LONGEST_DIFF = 8_000
"""Characters of a diff that are shown below a check."""


@dataclass(frozen=True)
class Check:
    """A question about a session, and the answer."""

    name: str
    """The configuration key or the rule's id."""
    outcome: CheckOutcome
    """`fail` fails the gate; `warn` is a problem at a level below `fail-on`."""
    severity: Level
    sentence: str
    value: float | None = None
    """In `unit`, for a limit; None for rules and for what was not measured."""
    interval: tuple[float, float] | None = None
    """95 % interval of the value."""
    limit: float | None = None
    file: str | None = None
    line: int | None = None
    speedup: float | None = None
    """The speed-up that a trial of its advice confirmed: throughput after by throughput before."""
    diff: str | None = None
    """The change of the script that solves it, as a unified diff; None if none is known."""
    unit: Unit = "percent"
    """Unit of value, interval and limit. Percent: of the step or the run; of the baseline's time
    for a slow-down."""

    @property
    def location(self) -> str:
        """`file:line` from the root of the repository, as far as known."""
        return location(self.file, self.line)

    @property
    def diff_lines(self) -> list[str]:
        """The diff to show; only the beginning of a long one."""
        if self.diff is None:
            return []
        shown = self.diff.rstrip("\n")[:_LONGEST_DIFF].replace("\r\n", "\n")
        found = applicable(shown).expandtabs().split("\n")
        if len(found) <= _MOST_DIFF_LINES and len(self.diff) <= _LONGEST_DIFF:
            return found
        return [*found[:_MOST_DIFF_LINES], "…", "`pipediag fix` prints all of it."]


@dataclass(frozen=True)
class GateResult:
    """All checks of one script."""

    label: str
    """The script as typed, or what distinguishes this result from others."""
    checks: tuple[Check, ...]
    script: str | None = None
    """The script as typed."""
    fail_on: Level = "error"
    allow_inconclusive: bool = False
    script_failure: str | None = None
    """A sentence on how the script ended too early for anything to be judged, if it did."""
    notes: tuple[str, ...] = ()
    """Sentences that explain all checks."""
    compared: bool = False
    """True if the checks compare with a baseline."""
    figures: Mapping[str, object] = field(default_factory=dict)
    """The main numbers of the runs, to be kept by CI: see `pipediag.gate.evaluation.figures`."""

    @property
    def status(self) -> ExitStatus:
        """The exit status that this result asks for."""
        if self.script_failure is not None:
            return ExitStatus.SCRIPT_FAILED
        if any(check.outcome == "fail" for check in self.checks):
            return ExitStatus.GATE_FAILED
        if self.undecided and not self.allow_inconclusive:
            return ExitStatus.INCONCLUSIVE
        return ExitStatus.DONE

    @property
    def status_word(self) -> str:
        """One or two words; a passed gate with undecided checks says so."""
        word = _STATUS_WORDS[self.status]
        if self.status is ExitStatus.DONE and self.undecided:
            return f"{word}, with inconclusive checks allowed"
        return word

    @property
    def undecided(self) -> tuple[Check, ...]:
        """The inconclusive checks that could fail the gate."""
        return tuple(
            check
            for check in self.checks
            if check.outcome == "inconclusive" and reaches(check.severity, self.fail_on)
        )

    @property
    def worst_checks_first(self) -> list[Check]:
        return sorted(self.checks, key=lambda check: OUTCOMES_WORST_FIRST.index(check.outcome))


def location(file: str | None, line: int | None) -> str:
    """Return `file:line` from the root of the repository, as far as known."""
    if file is None:
        return ""
    return in_checkout(file) if line is None else f"{in_checkout(file)}:{line}"


def reaches(severity: Level, fail_on: Level) -> bool:
    """Return True if a problem of this severity fails a gate with this threshold."""
    return severity == "error" or fail_on == "warn"


def past_limit(severity: Level, fail_on: Level) -> CheckOutcome:
    """Return the outcome of a check whose limit is certainly broken."""
    return "fail" if reaches(severity, fail_on) else "warn"


def worst_first(results: Iterable[GateResult]) -> list[GateResult]:
    """Return the results by status: failed, script failed, inconclusive, passed."""
    return sorted(results, key=lambda result: list(_STATUS_WORDS).index(result.status))


def worst_status(results: Iterable[GateResult]) -> ExitStatus:
    """Return the status of the worst result."""
    return worst_first(results)[0].status


def overall(results: Sequence[GateResult]) -> str:
    """Return the closing sentence over all results."""
    status = worst_status(results)
    if len(results) == 1:
        return f"Gate: {results[0].status_word} (exit status {status.value})."
    said = f"Gate: {_STATUS_WORDS[status]} (exit status {status.value})"
    hit = [result for result in results if result.status is status]
    if not any(result.compared for result in results):
        return f"{said}: {len(hit)} of {len(results)} sessions."
    if len(hit) == len(results):
        return f"{said}."
    return f"{said} by {'the baseline' if hit[-1].compared else 'its own checks'}."


def number(value: float, unit: Unit) -> str:
    """Format a value with the digits of its unit; times get three, as steps last µs or minutes."""
    if unit in ("ms", "s"):
        return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"
    return f"{value:.{2 if unit == 'ratio' else 1}f}"
