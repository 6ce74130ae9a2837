"""The ledger of a run against the stamps of the script's own clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.ledger_stamps import Parts, Stamps, added
from pipediag.session.ledger import Run
from pipediag.vocabulary import RUN_PARTS, RunPartName, RunScope

PART_GOAL = 5.0
"""Percent of the run that a part may be off by."""
TOTAL_GOAL = 10.0
"""Percent that a projected total may be off by."""
LOOP_PARTS: tuple[RunPartName, ...] = ("epoch_start", "steps", "evaluation", "epoch_end")
"""What an epoch of a loop without a known end consists of."""

AROUND_THE_SCRIPT = ("the interpreter", "exit")

Percents = dict[RunPartName, float]


@dataclass(frozen=True)
class Ended:
    """A run that was let go on to its end, beside the stamps of the same run."""

    ledger: Percents
    stamps: Percents
    ledger_after_start: Percents
    """Of what follows the start-up."""
    disturbed_s: float
    """What the stamps have more than the ledger: pipediag's work within the script."""
    pipediag_s: float
    """What the ledger says that pipediag took, its own start and end included."""

    @property
    def errors(self) -> Percents:
        return differences(self.ledger, self.stamps)


@dataclass(frozen=True)
class Stopped:
    """A run that pipediag stopped, and what the native run says of what it speaks of."""

    scope: RunScope
    projected: bool
    """False where the script was over before pipediag had seen enough."""
    ledger: Percents
    native: Percents
    total_error: float | None
    """Percent by which the projected total is above the native one; None for an epoch or steps."""

    @property
    def errors(self) -> Percents:
        return differences(self.ledger, self.native)


@dataclass(frozen=True)
class Native:
    """A run without pipediag."""

    seconds: float
    """From the script's first line to its end."""
    parts: Percents
    """Of what follows the start-up, as in all comparisons of two runs."""


@dataclass(frozen=True)
class Round:
    """One round of a script; where only the same run's stamps were asked for, one run of it."""

    ended: Ended
    native: Native | None = None
    stopped: Stopped | None = None
    carried_on: Stopped | None = None
    """What would have been projected of the run that was not stopped, against the same run."""

    @property
    def errors(self) -> Percents:
        """Of the ledger of the run that was not stopped, against the native run."""
        if self.native is None:
            return {}
        return differences(self.ended.ledger_after_start, self.native.parts)


@dataclass(frozen=True)
class Judged:
    """All rounds of a script, by their medians."""

    script: str
    rounds: Sequence[Round]

    @property
    def stopped(self) -> list[Stopped]:
        """The runs that were to be stopped."""
        return [one.stopped for one in self.rounds if one.stopped is not None]

    @property
    def same_run(self) -> Percents:
        return medians(one.ended.errors for one in self.rounds)

    @property
    def against_native(self) -> Percents:
        return medians(one.errors for one in self.rounds)

    @property
    def stopped_parts(self) -> Percents:
        return medians(one.errors for one in self.stopped)

    @property
    def total_error(self) -> float | None:
        """Of the projected totals; None where none was made."""
        return _median_total(self.stopped)

    @property
    def same_total_error(self) -> float | None:
        """The same, of runs that were carried on from their middle."""
        return _median_total([one.carried_on for one in self.rounds if one.carried_on is not None])

    @property
    def scope(self) -> str:
        """What the ledger of the stopped run speaks of."""
        if not self.stopped:
            return "-"
        last = self.stopped[-1]
        return last.scope if last.projected else "ran to its end"

    @property
    def misses(self) -> list[str]:
        """Which goals were not met, in words."""
        missed = [
            f"{part} is {error:+.1f} % off {what}"
            for what, errors in (
                ("the same run's stamps", self.same_run),
                ("the native run", self.against_native),
            )
            for part, error in errors.items()
            if abs(error) > PART_GOAL
        ]
        missed += [
            f"the projected total is {error:+.1f} % off the {of} run"
            for of, error in (("native", self.total_error), ("same", self.same_total_error))
            if error is not None and abs(error) > TOTAL_GOAL
        ]
        return missed


def undisturbed(stamps: Stamps, disturbed_s: float) -> Stamps:
    """Without what pipediag did in the steps of the first training, which it measures."""
    first = stamps.legs[0]
    steps = max(0.0, first.get("steps", 0.0) - disturbed_s)
    return replace(stamps, legs=({**first, "steps": steps}, *stamps.legs[1:]))


def ended_run(run: Run, stamps: Stamps) -> Ended:
    """The ledger of a whole run against its stamps.

    What pipediag does while the script runs falls into its steps, so what the stamps have more than
    the ledger is taken from those.
    """
    seen, told = stamps.parts(), parts_of(run)
    total = sum(told.values())
    disturbed = max(0.0, sum(seen.values()) - total)
    undisturbed: Parts = {**seen, "steps": max(0.0, seen.get("steps", 0.0) - disturbed)}
    return Ended(
        ledger=percents(told),
        stamps=percents(undisturbed),
        ledger_after_start=percents(after_start(told)),
        disturbed_s=disturbed,
        pipediag_s=run.pipediag_s,
    )


def stopped_run(run: Run, trainings: int, native: Stamps) -> Stopped:
    """A run that was stopped in that training, against the same stretch of the native one."""
    projected = run.projected_total_s is not None
    whole = after_start(native.parts(trainings if projected else None))
    told = after_start(parts_of(run))
    if projected and run.scope != "run":
        whole = {part: seconds for part, seconds in whole.items() if part in LOOP_PARTS}
    total = 100.0 * (sum(told.values()) / sum(whole.values()) - 1.0)
    return Stopped(
        run.scope, projected, percents(told), percents(whole), total if run.scope == "run" else None
    )


def parts_of(run: Run) -> Parts:
    """Seconds of the ledger's parts, without what no clock of the script's can see."""
    return added({one.part: one.seconds} for one in run.parts if one.what not in AROUND_THE_SCRIPT)


def after_start(parts: Mapping[RunPartName, float]) -> Parts:
    """Imports take twice as long in one run as in the next, so they are left out between runs."""
    return {part: seconds for part, seconds in parts.items() if part != "startup"}


def percents(parts: Mapping[RunPartName, float]) -> Percents:
    """Of the sum of all parts."""
    whole = sum(parts.values())
    return {part: 100.0 * seconds / whole for part, seconds in parts.items()} if whole else {}


def differences(mine: Percents, true: Percents) -> Percents:
    """How much of the run each part is above the truth."""
    return {
        part: mine.get(part, 0.0) - true.get(part, 0.0)
        for part in RUN_PARTS
        if part in mine or part in true
    }


def medians(all_percents: Iterable[Percents]) -> Percents:
    """Part by part; what a round lacks is 0 there."""
    listed = list(all_percents)
    return {
        part: median(one.get(part, 0.0) for one in listed)
        for part in RUN_PARTS
        if any(part in one for one in listed)
    }


def _median_total(runs: Iterable[Stopped]) -> float | None:
    known = [one.total_error for one in runs if one.projected and one.total_error is not None]
    return median(known) if known else None


def worst(errors: Percents) -> tuple[RunPartName, float] | None:
    """The part that is furthest off."""
    if not errors:
        return None
    part = max(errors, key=lambda one: abs(errors[one]))
    return part, errors[part]
