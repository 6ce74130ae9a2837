"""What the gate says: one check per limit or rule, one result per session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pipediag.errors import ExitStatus

CheckOutcome = Literal["pass", "fail", "warn", "inconclusive"]
Level = Literal["warn", "error"]
Unit = Literal["percent", "ratio", "ms", "s"]

# Worst first. A limit that was certainly broken outranks a run that could not be judged.
_WORST_FIRST = (
    ExitStatus.GATE_FAILED,
    ExitStatus.SCRIPT_FAILED,
    ExitStatus.INCONCLUSIVE,
    ExitStatus.DONE,
)


@dataclass(frozen=True)
class Check:
    """One question put to a session, and the answer."""

    name: str
    """The configuration key or the rule's id."""
    outcome: CheckOutcome
    """`fail` fails the gate; `warn` is past its limit at a level below `fail-on`."""
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
    """What a trial has confirmed that its advice buys: throughput after by throughput before."""
    diff: str | None = None
    """The change of the script that makes up for it, unified; None where none is known."""
    unit: Unit = "percent"
    """Of value, interval and limit. Percent: of the step or the run; of the baseline's time, for
    how much slower it is."""


@dataclass(frozen=True)
class GateResult:
    """All checks of one session."""

    label: str
    """The script as typed, or what tells the session from others."""
    checks: tuple[Check, ...]
    script: str | None = None
    """The script as typed."""
    fail_on: Level = "error"
    allow_inconclusive: bool = False
    script_failure: str | None = None
    """Set when the script ended too early for anything to be judged: a sentence on how."""
    notes: tuple[str, ...] = ()
    """What a reader of the checks should know of all of them, a sentence each."""
    compared: bool = False
    """Whether the checks are those of a comparison with a baseline."""

    @property
    def status(self) -> ExitStatus:
        """The exit status that this session asks for."""
        if self.script_failure is not None:
            return ExitStatus.SCRIPT_FAILED
        if any(check.outcome == "fail" for check in self.checks):
            return ExitStatus.GATE_FAILED
        if self.undecided and not self.allow_inconclusive:
            return ExitStatus.INCONCLUSIVE
        return ExitStatus.DONE

    @property
    def undecided(self) -> tuple[Check, ...]:
        """The inconclusive checks that would fail the gate if they went the wrong way."""
        return tuple(
            check
            for check in self.checks
            if check.outcome == "inconclusive" and reaches(check.severity, self.fail_on)
        )


def reaches(severity: Level, fail_on: Level) -> bool:
    """Whether a problem of this severity fails a gate with this threshold."""
    return severity == "error" or fail_on == "warn"


def past_limit(severity: Level, fail_on: Level) -> CheckOutcome:
    """The outcome of a check whose limit is certainly broken."""
    return "fail" if reaches(severity, fail_on) else "warn"


def worst_status(results: Iterable[GateResult]) -> ExitStatus:
    """The status of several sessions together: failed, script failed, inconclusive, passed."""
    return min((result.status for result in results), key=_WORST_FIRST.index)
