"""What a comparison says: one outcome for each quantity, and what explains it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

from pipediag.errors import ExitStatus

Outcome = Literal["regressed", "improved", "same", "inconclusive", "not judged"]
OUTCOMES: tuple[Outcome, ...] = ("regressed", "inconclusive", "improved", "same", "not judged")
"""As they decide: the first that any quantity has is that of the comparison."""
Unit = Literal["us", "ms", "s", "percent"]
Basis = Literal["runs", "blocks", "steps"]


@dataclass(frozen=True)
class Change:
    """From base to head: in percent of base for a time, in points for a share."""

    value: float
    low: float
    high: float
    basis: Basis
    """What was sampled: whole runs, stretches of steps within them, or steps, of which the sessions
    themselves have the interval."""
    samples: tuple[int, int]
    """How many of base, and of head."""
    level: float
    """Of the interval, percent."""
    fastest: float | None = None
    """Between the fastest sample of each side: another load that comes and goes slows some and
    speeds up none. None where no samples are known."""
    drifting: bool = False
    """Whether the runs tell of a machine that changed steadily from one to the next, so that the
    interval holds what is left without that."""
    all_along: bool = True
    """Whether the fastest stretch of steps of each run tells of it, too. What does not may be
    another load that slowed parts of the runs."""


@dataclass(frozen=True)
class Quantity:
    """One thing that both sides have."""

    name: str
    """`step`, `run`, `input-wait`, `overhead`, or a part of the run: `run.evaluation`."""
    label: str
    unit: Unit
    base: tuple[float, ...]
    """A value for each session; empty where `missing` says why."""
    head: tuple[float, ...]
    outcome: Outcome = "not judged"
    change: Change | None = None
    floor: float | None = None
    """The smallest change that counts: percent, or points."""
    missing: str | None = None
    """Why nothing is judged, or what keeps it from being decided, as a sentence."""

    @property
    def difference(self) -> float | None:
        """Between the medians: in percent of base's for a time, in points for a share."""
        if not self.base or not self.head:
            return None
        before, after = median(self.base), median(self.head)
        if self.unit == "percent":
            return after - before
        return 100.0 * (after / before - 1.0) if before > 0 else None


@dataclass(frozen=True)
class GrownOperation:
    """The operation of the input pipeline whose own time grew most."""

    name: str
    file: str | None
    line: int | None
    base_ms: float | None
    """Per step, summed over parallel calls; None where only head has it."""
    head_ms: float
    shares: bool = False
    """Whether these are percent of the step, as times of two machines cannot be compared."""


@dataclass(frozen=True)
class ToldFinding:
    """A failed finding that only one side has."""

    rule: str
    title: str
    file: str | None
    line: int | None


@dataclass(frozen=True)
class Comparison:
    """Head against base."""

    base_label: str
    head_label: str
    quantities: tuple[Quantity, ...]
    """Those that are judged first, then those that explain."""
    new: tuple[ToldFinding, ...] = ()
    gone: tuple[ToldFinding, ...] = ()
    grown: GrownOperation | None = None
    bottlenecks: tuple[str, str] = ("", "")
    notes: tuple[str, ...] = ()
    script_failure: str | None = None

    @property
    def outcome(self) -> Outcome:
        """Regressed where anything is; else inconclusive where anything judged is; else the best
        news."""
        found = {one.outcome for one in self.quantities} - {"not judged"}
        return next((outcome for outcome in OUTCOMES if outcome in found), "inconclusive")

    @property
    def status(self) -> ExitStatus:
        """What it asks the process to end with."""
        if self.outcome == "regressed":
            return ExitStatus.GATE_FAILED
        if self.script_failure is not None:
            return ExitStatus.SCRIPT_FAILED
        return ExitStatus.INCONCLUSIVE if self.outcome == "inconclusive" else ExitStatus.DONE
