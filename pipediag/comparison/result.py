"""The records of a comparison: an outcome for each quantity, and what explains it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

from pipediag.session.findings import Finding

Outcome = Literal["regressed", "improved", "same", "inconclusive", "not judged"]
Unit = Literal["us", "ms", "s", "percent"]
Basis = Literal["runs", "blocks", "steps"]


@dataclass(frozen=True)
class Change:
    """A change from base to head: in percent of base for a time, in points for a share."""

    value: float
    low: float
    high: float
    basis: Basis
    """What was sampled: whole runs, stretches of steps within them, or steps, whose interval the
    sessions contain."""
    samples: tuple[int, int]
    """The number of samples of base, and of head."""
    level: float
    """Level of the interval, percent."""
    fastest: float | None = None
    """Change between the fastest sample of each side, which other loads affect least. None if no
    samples are known."""
    drifting: bool = False
    """True if the runs show a machine that changed steadily from one to the next."""
    all_along: bool = True
    """True if the fastest stretch of steps of each run shows the change, too. If not, another load
    may have slowed parts of the runs."""


@dataclass(frozen=True)
class Quantity:
    """A quantity that both sides have."""

    name: str
    """`step`, `run`, `input-wait`, `overhead`, or a part of the run: `run.evaluation`."""
    label: str
    unit: Unit
    base: tuple[float, ...]
    """A value for each session; empty if `missing` says why."""
    head: tuple[float, ...]
    outcome: Outcome = "not judged"
    change: Change | None = None
    floor: float | None = None
    """The smallest change that counts: percent, or points."""
    missing: str | None = None
    """Why nothing is judged or decided, as a sentence."""

    @property
    def difference(self) -> float | None:
        """The change of the medians: in percent of base's for a time, in points for a share."""
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
    """Per step, summed over parallel calls; None if only head has it."""
    head_ms: float
    shares: bool = False
    """True if these are percent of the step, as times of two machines cannot be compared."""


@dataclass(frozen=True)
class Comparison:
    """Head compared with base."""

    base_label: str
    head_label: str
    quantities: tuple[Quantity, ...]
    """First those that are judged, then those that explain."""
    new: tuple[Finding, ...] = ()
    """Failed findings that only head has."""
    gone: tuple[Finding, ...] = ()
    grown: GrownOperation | None = None
    bottlenecks: tuple[str, str] = ("", "")
    notes: tuple[str, ...] = ()
    script_failure: str | None = None
