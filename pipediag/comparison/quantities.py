"""Quantities of limits and comparisons, which of them are judged, and what explains a change."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from statistics import median
from typing import Literal

from pipediag.comparison import statistics
from pipediag.comparison.statistics import TIMES, Change, Floors, Outcome
from pipediag.encoding import clipped
from pipediag.errors import PipediagError
from pipediag.facts.names import RUN_PART
from pipediag.facts.run import whole_in_words
from pipediag.facts.run_gain import ONCE_OFF
from pipediag.facts.step import GROUPS
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunPart
from pipediag.session.model import Environment, Session
from pipediag.session.pipeline import Operation
from pipediag.session.record import Interval
from pipediag.vocabulary import RUN_PARTS, RunPartName, StepClass

Unit = Literal["percent", "ratio", "us", "ms", "s"]

INPUT: tuple[StepClass, ...] = ("input_wait",)
OVERHEAD: tuple[StepClass, ...] = GROUPS["overhead"]

SHORTEST, LONGEST = 1e-6, 1e12
"""Bounds of a time in milliseconds or seconds: a stranger's file may hold impossible values."""


@dataclass(frozen=True)
class Measured:
    """A value with its 95 % interval; a time that was taken once has none but itself."""

    value: float
    interval: Interval
    of: str = ""
    """The whole that it is a share of, such as `the step`."""


Value = Callable[[Session], Measured | str]
"""Returns what a session has; a text says why it has none."""


def run_in_the_middle(runs: Sequence[Session]) -> Session:
    """Return the run with the median step; runs without steps count as slowest."""
    slowest_last = sorted(runs, key=lambda run: run.steps.mean_ms if run.steps else math.inf)
    return slowest_last[(len(runs) - 1) // 2]


def step_ms(session: Session) -> Measured | str:
    """Return the mean step, to which the breakdown adds up and which includes input bursts."""
    if session.steps is None:
        return session.steps_missing or "no step was measured."
    return _time(session.steps.mean_ms)


def example_us(session: Session) -> Measured | str:
    """Return the microseconds of the mean step for each example of its batch."""
    if session.steps is None or not session.steps.batch_size:
        return "the size of its batches is not known."
    return _time(1000.0 * session.steps.mean_ms / session.steps.batch_size)


def run_s(session: Session) -> Measured | str:
    """Return the seconds of the run, observed or projected, without those that pipediag took."""
    return _no_ledger(session) if session.run is None else _time(session.run.whole_s)


def part_s(session: Session, part: RunPartName) -> Measured | str:
    """Return the seconds of a part of the run; it may have none."""
    if session.run is None:
        return _no_ledger(session)
    seconds = session.run.seconds_of(part)
    return Measured(seconds, (seconds, seconds))


def part_percent(session: Session, part: RunPartName) -> Measured | str:
    """Return the share of the run that all rows of a part take together."""
    if session.run is None:
        return _no_ledger(session)
    bounds = [_bounds(row) for row in session.run.parts if row.part == part]
    interval = sum(low for low, _ in bounds), sum(high for _, high in bounds)
    return _share(session.run.percent_of(part), interval, whole_in_words(session.run))


def step_percent(session: Session, classes: Sequence[StepClass]) -> Measured | str:
    """Return the share of the step in these classes together.

    The ends of the intervals are added. That is never narrower than the true interval of the sum,
    whatever the correlation between the classes.
    """
    if session.breakdown is None:
        return session.breakdown_missing or "the session has no breakdown of the step."
    missing = [name for name in classes if name not in session.breakdown]
    if missing:
        return f"the breakdown lacks {', '.join(missing)}."
    shares = [session.breakdown[name] for name in classes]
    low = sum(share.ci95_percent[0] for share in shares)
    high = sum(share.ci95_percent[1] for share in shares)
    return _share(sum(share.percent for share in shares), (low, high), "the step")


def _bounds(row: RunPart) -> Interval:
    """Return the interval of a row: what was timed once has none, a projection always has one."""
    if row.ci95_percent is not None:
        return row.ci95_percent
    off = ONCE_OFF * row.percent if row.basis == "projected" else 0.0
    return row.percent - off, row.percent + off


def _no_ledger(session: Session) -> str:
    return session.run_missing or "the session has no ledger of the run."


def _time(value: float) -> Measured | str:
    possible = SHORTEST <= value <= LONGEST
    return Measured(value, (value, value)) if possible else "its value is impossible for a time."


def _share(value: float, interval: Interval, of: str) -> Measured | str:
    possible = -1.0 <= value <= 101.0
    return Measured(value, interval, of) if possible else "its value is impossible for a share."


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
    """The smallest change that counts, percent."""
    missing: str | None = None
    """The reason why nothing is judged or decided, as a sentence."""


@dataclass(frozen=True)
class Sides:
    """The sessions of both versions, and how they are compared."""

    base: tuple[Session, ...]
    head: tuple[Session, ...]
    floor_percent: float | None = None
    """The smallest slow-down that counts, percent; None for the built-in one."""

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
    steps = [one.steps for one in (*sides.base, *sides.head) if one.steps is not None]
    per_example = len({one.batch_size for one in steps}) > 1
    step = (
        _quantity(sides, "step", "Step per example, as batch sizes differ", example_us, "us")
        if per_example
        else _quantity(sides, "step", "Step", step_ms, "ms")
    )
    run = _run(sides)
    if not sides.repeated:
        yield _judged_by_stretches(step, sides, per_example)
        yield replace(run, missing=run.missing or _ONE_RUN)
        return
    fastest = _change_at_its_fastest(sides, per_example)
    yield _judged_by_runs(step, sides, fastest)
    run = _judged_by_runs(run, sides, fastest)
    if run.outcome == "inconclusive" and run.change and run.change.value < (run.floor or 0.0):
        # The step alone decides: a run begins with imports, which take twice as long if the files
        # are not in memory yet.
        run = replace(run, outcome="not judged", missing=_TOO_NOISY)
    yield run


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


def _judged_by_stretches(quantity: Quantity, sides: Sides, per_example: bool) -> Quantity:
    if quantity.missing is not None:
        return replace(quantity, outcome="inconclusive")
    base, head = (_blocks(side, per_example) for side in (sides.base, sides.head))
    if min(len(base), len(head)) < statistics.FEWEST_BLOCKS:
        reason = (
            f"Too few to decide: {len(base)} and {len(head)} stretches of steps, and "
            f"{statistics.FEWEST_BLOCKS} are needed. Measure more steps (--steps)."
        )
        return replace(quantity, outcome="inconclusive", missing=reason)
    change = statistics.change_of_times(base, head, 1.0, basis="blocks")
    return _judged(quantity, change, sides.times)


def _judged_by_runs(quantity: Quantity, sides: Sides, fastest: float | None) -> Quantity:
    if quantity.missing is not None:
        return replace(quantity, outcome="inconclusive")
    floors, order = sides.times, statistics.order_of(sides.base, sides.head)
    change = statistics.change_of_times(quantity.base, quantity.head, 0.5, order)
    all_along = fastest is not None and statistics.has_most_of(fastest, change.value, floors.counts)
    return _judged(quantity, replace(change, all_along=all_along), floors)


def _judged(quantity: Quantity, change: Change, floors: Floors) -> Quantity:
    outcome = statistics.judge(change, floors)
    return replace(quantity, outcome=outcome, change=change, floor=floors.counts)


def _parts(sides: Sides) -> Iterator[Quantity]:
    """Yield each part that is large enough, in seconds."""
    for part in RUN_PARTS:
        name, label = f"run.{part.replace('_', '-')}", RUN_PART[part]
        percents = _quantity(sides, name, label, partial(part_percent, part=part))
        if max((*percents.base, *percents.head), default=0.0) >= LEAST_PART_PERCENT:
            yield _quantity(sides, name, label, partial(part_s, part=part), "s")


Key = tuple[str, str, int]
"""Kind and function of an operation, and its number among those in the order of the data. Lines are
no part of it, so that a line that is added above does not make it another operation."""

LEAST_PERCENT = 5.0
"""Percent of base's step by which an operation must have grown to be named. Own choice: the
smallest change of the step that counts."""


@dataclass(frozen=True)
class GrownOperation:
    """The operation of the input pipeline whose own time grew most."""

    op: Operation
    base_ms: float | None
    """Per step, summed over parallel calls; None if only head has it."""
    head_ms: float

    @property
    def growth_ms(self) -> float:
        return self.head_ms - (self.base_ms or 0.0)


def grown(sides: Sides) -> GrownOperation | None:
    """Return the operation whose own time grew most, by the run in the middle of each side; None if
    none grew enough."""
    before, after = run_in_the_middle(sides.base), run_in_the_middle(sides.head)
    base = {key: ms for key, _, ms in _operations(before)}
    found = [GrownOperation(op, base.get(key), ms) for key, op, ms in _operations(after)]
    most = max(found, key=lambda one: one.growth_ms, default=None)
    if most is None or not base or before.steps is None:
        return None
    return most if most.growth_ms >= LEAST_PERCENT / 100.0 * before.steps.mean_ms else None


def _operations(session: Session) -> Iterator[tuple[Key, Operation, float]]:
    """Yield each operation with its own time in ms per step."""
    seen: Counter[tuple[str, str]] = Counter()
    for op in session.ops:
        what = op.kind, function_name(op)
        if op.self_ms_per_step is not None:
            yield (*what, seen[what]), op, op.self_ms_per_step
        seen[what] += 1


def function_name(op: Operation) -> str:
    """Return the name of its function; empty for a lambda, or where it has none."""
    name = op.function.name if op.function is not None else ""
    return "" if name.startswith("<") else name


_LONGEST = 80


def refuse_several_scripts(side: Iterable[Session]) -> None:
    """Refuse what is not runs of one script, or of one worker of a job.

    Raises PipediagError: names two of them.
    """
    names = set()
    for session in side:
        script, worker = session.script, session.environment.worker
        name = script.path if script.module else PurePath(script.path).name
        names.add(f"{name}, {worker.name}" if worker is not None else name)
    if len(names) > 1:
        both = "; ".join(clipped(name, _LONGEST) for name in sorted(names)[:2])
        raise PipediagError(
            f"These are not runs of one script, or of one worker of a job ({both}). Nothing was "
            "compared. Name the sessions of one."
        )


def refuse_other_machines(base: Sequence[Session], head: Sequence[Session]) -> None:
    """Refuse to compare times of different machines.

    Raises PipediagError: the fingerprints of the sessions differ; names the machines.
    """
    machines = {one.environment.fingerprint: one.environment for one in (*base, *head)}
    if len(machines) > 1:
        both = "; ".join(map(_named, list(machines.values())[:2]))
        raise PipediagError(
            f"The sessions are from different machines ({both}), so their times can't be compared. "
            "Measure both on one machine, or check shares of the step and of the run against "
            "limits of [tool.pipediag]."
        )


def _named(machine: Environment) -> str:
    allowed = f", {machine.cpu_quota:g} allowed" if machine.cpu_quota is not None else ""
    devices = ", ".join(sorted(device.name for device in machine.devices)) or "no devices"
    processor = clipped(machine.cpu_model or "unknown processor", _LONGEST)
    return f"{processor}: {machine.cores} CPUs{allowed}, {clipped(devices, _LONGEST)}"


def only_in(session: Session, other: Session) -> tuple[Finding, ...]:
    """Return findings of rules that fail here alone."""
    there = {one.rule for one in _failed(other)}
    return tuple(one for one in _failed(session) if one.rule not in there)


def _failed(session: Session) -> list[Finding]:
    return [one for one in session.findings if one.status == "fail" and not one.dropped]
