"""Which quantities are held against one another, which of them are judged, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from pipediag.comparison import statistics, values
from pipediag.comparison.order import Order, order_of
from pipediag.comparison.result import Change, Quantity, Unit
from pipediag.comparison.statistics import SHARES, TIMES, Floors, Measured, Samples
from pipediag.facts.names import RUN_PART
from pipediag.session.model import Session
from pipediag.vocabulary import RUN_PARTS, StepClass

_ONE_RUN = (
    f"Judged only with {statistics.FEWEST_RUNS} runs or more on each side: one run has one value."
)


_TOO_NOISY = (
    "Not judged: the runs of one side differ by too much, as where the first one reads all files."
)

_FASTEST_LABEL = "Step, in the fastest stretch of each run"

LEAST_PART_PERCENT = 1.0
"""Of the run: a part that takes less on both sides explains nothing. Own choice."""


@dataclass(frozen=True)
class Sides:
    """The sessions of both, and how they are compared."""

    base: tuple[Session, ...]
    head: tuple[Session, ...]
    ratios_only: bool = False
    floor_percent: float | None = None
    """The smallest slow-down that counts, percent; None for the built-in one."""

    @property
    def order(self) -> Order | None:
        """In which the runs were made; None where it is not known."""
        return order_of(self.base, self.head)

    @property
    def by_turns(self) -> bool:
        """Whether no steady drift of the machine can be between them."""
        order = self.order
        return order is not None and order.by_turns

    @property
    def repeated(self) -> bool:
        """Whether each has so many runs that a run can be the sample."""
        return min(len(self.base), len(self.head)) >= statistics.FEWEST_RUNS

    @property
    def times(self) -> Floors:
        built_in = TIMES["runs" if self.repeated else "blocks"]
        if self.floor_percent is None:
            return built_in
        # Between single runs a small change means nothing, whatever one would like to know.
        least = 0.0 if self.repeated else built_in.counts
        counts = max(least, self.floor_percent)
        return Floors(counts, max(built_in.hides, 2.0 * counts))


def quantities(sides: Sides) -> tuple[Quantity, ...]:
    """Those that are judged first, then those that explain."""
    if sides.ratios_only:
        return (*_judged_shares(sides), *_parts(sides))
    return (*_judged_times(sides), *_shares(sides), *_parts(sides))


def _judged_times(sides: Sides) -> Iterator[Quantity]:
    by_turns = sides.repeated and sides.by_turns
    share = 1 / (3 if by_turns else 2 if sides.repeated else 1)
    per_example = _batches_differ(sides)
    step = _step(sides, per_example)
    run = _run(sides)
    if sides.repeated:
        fastest = _at_its_fastest(sides, per_example)
        step = _with_times(step, sides, share, _runs(step), fastest)
        yield step
        yield _decided_or_not_judged(_with_times(run, sides, share, _runs(run), fastest))
        if fastest is not None and by_turns:
            judged = _with_times(fastest, sides, share, _runs(fastest), fastest)
            yield judged if _tells_of_steps(judged, step) else fastest
    else:
        both = (_blocks(sides.base, per_example), _blocks(sides.head, per_example))
        yield _with_times(step, sides, share, both)
        yield replace(run, missing=run.missing or _ONE_RUN)


def _decided_or_not_judged(run: Quantity) -> Quantity:
    """A run begins with imports, which take twice as long where the files are not in memory yet.

    Where that is all there is to see, the step alone decides.
    """
    change = run.change
    if run.outcome != "inconclusive" or change is None or change.value >= (run.floor or 0.0):
        return run
    return replace(run, outcome="not judged", missing=_TOO_NOISY)


def _batches_differ(sides: Sides) -> bool:
    """A step is then no measure: its time is compared for each example."""
    steps = [one.steps for one in (*sides.base, *sides.head) if one.steps is not None]
    return len({one.batch_size for one in steps}) > 1


def _step(sides: Sides, per_example: bool) -> Quantity:
    if per_example:
        found = values.values_of(sides.base, sides.head, values.example_us)
        label = "Step, for each example, as batches differ in size"
        return Quantity("step", label, "us", found.base, found.head, missing=found.missing)
    found = values.values_of(sides.base, sides.head, values.step_ms)
    return Quantity("step", "Step", "ms", found.base, found.head, missing=found.missing)


def _run(sides: Sides) -> Quantity:
    scopes = {one.run.scope for one in (*sides.base, *sides.head) if one.run is not None}
    found = values.values_of(sides.base, sides.head, values.run_s)
    if len(scopes) > 1:
        reason = "The ledgers do not speak of the same: " + " and ".join(sorted(scopes)) + "."
        found = values.Values(missing=reason)
    label = "Run" if scopes in ({"run"}, set()) else f"Run (one {next(iter(scopes))})"
    return Quantity("run", label, "s", found.base, found.head, missing=found.missing)


def _runs(quantity: Quantity) -> tuple[Samples, Samples]:
    return Samples(quantity.base, "runs"), Samples(quantity.head, "runs")


def _blocks(sessions: Sequence[Session], per_example: bool) -> Samples:
    """Stretches of each session's steps."""
    found: list[float] = []
    for session in sessions:
        steps = session.steps
        if steps is not None:
            examples = (steps.batch_size or 1) if per_example else 1
            found += [one / examples for one in statistics.blocks(values.samples_ms(steps))]
    return Samples(tuple(found), "blocks")


def _at_its_fastest(sides: Sides, per_example: bool) -> Quantity | None:
    """The step in the fastest stretch of each run; None where a run has too few steps for one.

    Another load that comes and goes leaves it alone in most runs, so that they differ little.
    """
    base, head = (
        [min(_blocks([session], per_example).values, default=None) for session in side]
        for side in (sides.base, sides.head)
    )
    of_base, of_head = (tuple(one for one in side if one is not None) for side in (base, head))
    if (len(of_base), len(of_head)) != (len(base), len(head)):
        return None
    unit: Unit = "us" if per_example else "ms"
    return Quantity("step-at-its-fastest", _FASTEST_LABEL, unit, of_base, of_head)


def _tells_of_steps(fastest: Quantity, step: Quantity) -> bool:
    """Whether it makes head slower: steps that are slower on the whole have to be so there."""
    if fastest.outcome != "regressed" or step.change is None or step.floor is None:
        return False
    return step.change.value >= step.floor


def _with_times(
    quantity: Quantity,
    sides: Sides,
    share: float,
    samples: tuple[Samples, Samples],
    fastest: Quantity | None = None,
) -> Quantity:
    if quantity.missing is not None:
        return replace(quantity, outcome="inconclusive")
    if not all(side.enough for side in samples):
        counts = " and ".join(str(len(side.values)) for side in samples)
        return replace(
            quantity,
            outcome="inconclusive",
            missing=(
                f"Too few to judge by: {counts} stretches of steps, where "
                f"{statistics.FEWEST_BLOCKS} are the fewest. Measure more steps (--steps)."
            ),
        )
    order = sides.order if sides.repeated else None
    change = statistics.change_of_times(*samples, share, order)
    if sides.repeated:
        change = replace(change, all_along=_all_along(change, fastest, sides.times))
    return _judged(quantity, change, sides.times)


def _all_along(change: Change, fastest: Quantity | None, floors: Floors) -> bool:
    if fastest is None or fastest.difference is None:
        return False
    return statistics.has_most_of(fastest.difference, change.value, floors.counts)


def _judged(quantity: Quantity, change: Change, floors: Floors) -> Quantity:
    outcome = statistics.judge(change, floors)
    return replace(quantity, outcome=outcome, change=change, floor=floors.counts)


def _judged_shares(sides: Sides) -> Iterator[Quantity]:
    shares: tuple[tuple[str, str, tuple[StepClass, ...]], ...] = (
        ("input-wait", "Input wait, of the step", values.INPUT),
        ("overhead", "Overhead, of the step", values.OVERHEAD),
    )
    error = 1 / len(shares)
    for name, label, classes in shares:
        quantity = _share(sides, name, label, classes)
        if quantity.missing is not None:
            yield replace(quantity, outcome="inconclusive")
        elif sides.repeated:
            change = statistics.change_of_shares(*_runs(quantity), error, sides.order)
            yield _judged(quantity, change, SHARES["runs"])
        else:
            both = (_measured(sides.base, classes), _measured(sides.head, classes))
            change = statistics.change_of_measured_shares(*both, error)
            yield _judged(quantity, change, SHARES["steps"])


def _measured(sessions: Sequence[Session], classes: tuple[StepClass, ...]) -> Measured:
    percents = [values.step_percent(classes)(session) for session in sessions]
    return Measured(
        percent=median(one for one in percents if not isinstance(one, str)),
        width=median(values.step_percent_width(session, classes) for session in sessions),
        steps=sum(session.steps.count for session in sessions if session.steps is not None),
    )


def _share(sides: Sides, name: str, label: str, classes: tuple[StepClass, ...]) -> Quantity:
    found = values.values_of(sides.base, sides.head, values.step_percent(classes))
    return Quantity(name, label, "percent", found.base, found.head, missing=found.missing)


def _shares(sides: Sides) -> Iterator[Quantity]:
    yield _share(sides, "input-wait", "Input wait, of the step", values.INPUT)
    yield _share(sides, "overhead", "Overhead, of the step", values.OVERHEAD)


def _parts(sides: Sides) -> Iterator[Quantity]:
    """Each part that is worth a line: seconds, or percent of the run where machines differ."""
    for part in RUN_PARTS:
        percents = values.values_of(sides.base, sides.head, values.part_percent(part))
        if max((*percents.base, *percents.head), default=0.0) < LEAST_PART_PERCENT:
            continue
        value = values.part_percent(part) if sides.ratios_only else values.part_s(part)
        found = values.values_of(sides.base, sides.head, value)
        yield Quantity(
            f"run.{part.replace('_', '-')}",
            RUN_PART[part],
            "percent" if sides.ratios_only else "s",
            found.base,
            found.head,
        )
