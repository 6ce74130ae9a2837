"""The quantities that are compared: their values in the sessions, and which are judged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from pipediag.comparison import statistics
from pipediag.comparison.statistics import (
    SHARES,
    TIMES,
    Change,
    Floors,
    Order,
    Outcome,
    Share,
)
from pipediag.comparison.values import (
    INPUT,
    LONGEST,
    OVERHEAD,
    SHORTEST,
    Measured,
    Unit,
    Value,
    example_us,
    part_percent,
    part_s,
    run_s,
    step_ms,
    step_percent,
)
from pipediag.facts.names import RUN_PART
from pipediag.session.model import Session
from pipediag.vocabulary import RUN_PARTS, StepClass

LEAST_PART_PERCENT = 1.0
"""Share of the run below which a part is not shown. Own choice."""

_ONE_RUN = (
    f"Judged only with {statistics.FEWEST_RUNS} or more runs on each side: one run has one value."
)
_TOO_NOISY = (
    "Not judged: the runs of one side differ too much, as when the first one reads all files."
)
_SHARES = (
    ("input-wait", "Input wait as a share of the step", INPUT),
    ("overhead", "Overhead as a share of the step", OVERHEAD),
)


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
    """The reason why nothing is judged or decided, as a sentence."""

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
class Sides:
    """The sessions of both versions, and how they are compared."""

    base: tuple[Session, ...]
    head: tuple[Session, ...]
    ratios_only: bool = False
    floor_percent: float | None = None
    """The smallest slow-down that counts, percent; None for the built-in one."""

    @property
    def order(self) -> Order | None:
        """The order of the runs; None if it is not known."""
        return statistics.order_of(self.base, self.head)

    @property
    def repeated(self) -> bool:
        """True if each side has enough runs to take a run as a sample."""
        return min(len(self.base), len(self.head)) >= statistics.FEWEST_RUNS

    @property
    def times(self) -> Floors:
        """The floors of times."""
        built_in = TIMES["runs" if self.repeated else "blocks"]
        if self.floor_percent is None:
            return built_in
        # Between single runs a small change means nothing, whatever is configured.
        least = 0.0 if self.repeated else built_in.counts
        counts = max(least, self.floor_percent)
        return Floors(counts, max(built_in.hides, 2.0 * counts))


def quantities(sides: Sides) -> tuple[Quantity, ...]:
    """Return first the quantities that are judged, then those that explain."""
    if sides.ratios_only:
        return (*_judged_shares(sides), *_parts(sides))
    shares = (
        _quantity(sides, name, label, partial(step_percent, classes=classes))
        for name, label, classes in _SHARES
    )
    return (*_judged_times(sides), *shares, *_parts(sides))


def _quantity(
    sides: Sides, name: str, label: str, value: Value, unit: Unit = "percent"
) -> Quantity:
    found: list[tuple[float, ...]] = []
    for side, sessions in (("base", sides.base), ("head", sides.head)):
        values = [value(session) for session in sessions]
        missing = next((one for one in values if isinstance(one, str)), None)
        if missing is not None:
            return Quantity(name, label, unit, (), (), missing=f"Not known for {side}: {missing}")
        found.append(tuple(one.value for one in values if isinstance(one, Measured)))
    return Quantity(name, label, unit, found[0], found[1])


def _judged_times(sides: Sides) -> Iterator[Quantity]:
    per_example = _batches_differ(sides)
    step, run = _step(sides, per_example), _run(sides)
    if not sides.repeated:
        blocks = (_blocks(sides.base, per_example), _blocks(sides.head, per_example))
        yield _with_times(step, sides, blocks)
        yield replace(run, missing=run.missing or _ONE_RUN)
        return
    fastest = _change_at_its_fastest(sides, per_example)
    yield _with_times(step, sides, None, fastest)
    yield _decided_or_not_judged(_with_times(run, sides, None, fastest))


def _decided_or_not_judged(run: Quantity) -> Quantity:
    """Let the step alone decide if the run is undecided and its value is below the floor.

    A run begins with imports, which take twice as long if the files are not in memory yet.
    """
    change = run.change
    if run.outcome != "inconclusive" or change is None or change.value >= (run.floor or 0.0):
        return run
    return replace(run, outcome="not judged", missing=_TOO_NOISY)


def _batches_differ(sides: Sides) -> bool:
    """Return True if batch sizes differ; the time of a step is then compared for each example."""
    steps = [one.steps for one in (*sides.base, *sides.head) if one.steps is not None]
    return len({one.batch_size for one in steps}) > 1


def _step(sides: Sides, per_example: bool) -> Quantity:
    if per_example:
        label = "Step per example, as batch sizes differ"
        return _quantity(sides, "step", label, example_us, "us")
    return _quantity(sides, "step", "Step", step_ms, "ms")


def _run(sides: Sides) -> Quantity:
    scopes = {one.run.scope for one in (*sides.base, *sides.head) if one.run is not None}
    label = "Run" if scopes in ({"run"}, set()) else f"Run (one {next(iter(scopes))})"
    if len(scopes) > 1:
        reason = f"The ledgers cover different spans: {' and '.join(sorted(scopes))}."
        return Quantity("run", label, "s", (), (), missing=reason)
    return _quantity(sides, "run", label, run_s, "s")


def _blocks(sessions: Sequence[Session], per_example: bool) -> list[float]:
    found: list[float] = []
    for session in sessions:
        steps = session.steps
        if steps is not None:
            examples = (steps.batch_size or 1) if per_example else 1
            times = [one for one in steps.samples_ms if SHORTEST <= one <= LONGEST]
            found += [one / examples for one in statistics.blocks(times)]
    return found


def _change_at_its_fastest(sides: Sides, per_example: bool) -> float | None:
    """Return the change of the fastest stretch of each run, percent; None if a run has too few.

    Another load that comes and goes leaves it alone in most runs.
    """
    base, head = (
        [min(_blocks([session], per_example), default=math.nan) for session in side]
        for side in (sides.base, sides.head)
    )
    change = 100.0 * (median(head) / median(base) - 1.0)
    return change if all(map(math.isfinite, (*base, *head))) else None


def _with_times(
    quantity: Quantity,
    sides: Sides,
    blocks: tuple[list[float], list[float]] | None,
    fastest: float | None = None,
) -> Quantity:
    """Return the quantity with its change, by the runs or by these stretches of steps."""
    if quantity.missing is not None:
        return replace(quantity, outcome="inconclusive")
    floors = sides.times
    if blocks is not None:
        if min(map(len, blocks)) < statistics.FEWEST_BLOCKS:
            reason = (
                f"Too few to decide: {len(blocks[0])} and {len(blocks[1])} stretches of steps, and "
                f"{statistics.FEWEST_BLOCKS} are needed. Measure more steps (--steps)."
            )
            return replace(quantity, outcome="inconclusive", missing=reason)
        return _judged(quantity, statistics.change_of_times(*blocks, 1.0, basis="blocks"), floors)
    change = statistics.change_of_times(quantity.base, quantity.head, 0.5, sides.order)
    all_along = fastest is not None and statistics.has_most_of(fastest, change.value, floors.counts)
    return _judged(quantity, replace(change, all_along=all_along), floors)


def _judged(quantity: Quantity, change: Change, floors: Floors) -> Quantity:
    outcome = statistics.judge(change, floors)
    return replace(quantity, outcome=outcome, change=change, floor=floors.counts)


def _judged_shares(sides: Sides) -> Iterator[Quantity]:
    error = 1 / len(_SHARES)
    for name, label, classes in _SHARES:
        quantity = _quantity(sides, name, label, partial(step_percent, classes=classes))
        if quantity.missing is not None:
            yield replace(quantity, outcome="inconclusive")
        elif sides.repeated:
            change = statistics.change_of_shares(quantity.base, quantity.head, error, sides.order)
            yield _judged(quantity, change, SHARES["runs"])
        else:
            change = statistics.change_of_measured_shares(
                _share_of(sides.base, classes), _share_of(sides.head, classes), error
            )
            yield _judged(quantity, change, SHARES["steps"])


def _share_of(sessions: Sequence[Session], classes: tuple[StepClass, ...]) -> Share:
    known = [step_percent(session, classes) for session in sessions]
    shares = [one for one in known if isinstance(one, Measured)]
    widths = [abs(one.interval[1] - one.interval[0]) for one in shares]
    counts = [session.steps.count for session in sessions if session.steps is not None]
    return Share(median(one.value for one in shares), median(widths), sum(counts))


def _parts(sides: Sides) -> Iterator[Quantity]:
    """Yield each part that is large enough: in seconds, or in percent if machines may differ."""
    for part in RUN_PARTS:
        name, label = f"run.{part.replace('_', '-')}", RUN_PART[part]
        percents = _quantity(sides, name, label, partial(part_percent, part=part))
        if max((*percents.base, *percents.head), default=0.0) >= LEAST_PART_PERCENT:
            if not sides.ratios_only:
                percents = _quantity(sides, name, label, partial(part_s, part=part), "s")
            yield replace(percents, missing=None)
