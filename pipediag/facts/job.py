"""A job of several workers that train one model: who they are, and whom the others wait for.

Workers exchange gradients in each step, so all of them take as long as the slowest. What a worker
does apart from the exchange is its own work; in the rest of its step it exchanges or waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Literal

from pipediag.errors import PipediagError
from pipediag.facts.limits import INPUT_BOUND, INPUT_WAIT, bound
from pipediag.facts.pipeline import chain, last_operation
from pipediag.session.findings import Verdict
from pipediag.session.model import Session
from pipediag.session.record import Interval
from pipediag.session.worker import Worker
from pipediag.vocabulary import StepClass

SAME_STEP = 1.1
"""Ratio of the longest to the shortest mean step up to which workers took their steps together. Own
choice: each worker measures a window of its own."""

_MAKES = frozenset({"map", "batch", "padded_batch"})
"""Operations in which the time of an input pipeline goes."""

STRAGGLES = INPUT_BOUND.value / 100.0
"""Part of the step by which its own work is longer: own choice, as the limit on the input wait."""


Sharding = Literal["none", "before the work", "behind the work"]
"""`behind the work`: every worker makes all batches and drops those of the others."""


@dataclass(frozen=True)
class WorkersStep:
    """The mean step of one worker."""

    worker: Worker
    verdict: Verdict
    step_ms: float
    classes_ms: Mapping[StepClass, float]
    exchange_limits_percent: Interval
    """Ends of the 95 % interval of the time in collectives, waits for others included."""
    evaluation_percent: float
    """Percent of the run that evaluation takes."""
    batches: int | None
    """Number in an epoch, where the pipeline says so."""
    sharding: Sharding
    """The place at which the worker takes its part of the data."""

    @property
    def own_ms(self) -> float:
        """Milliseconds of the step outside collectives."""
        return self.step_ms - self.classes_ms["collective"]

    @property
    def own_limits_ms(self) -> Interval:
        low, high = self.exchange_limits_percent
        return self.step_ms * (1.0 - high / 100.0), self.step_ms * (1.0 - low / 100.0)


@dataclass(frozen=True)
class Job:
    """All workers of a job whose sessions are there, by rank."""

    size: int
    steps: list[WorkersStep]
    unmeasured: dict[str, str]
    """Names of workers without a measured step, with the reason."""

    @property
    def missing(self) -> int:
        """Workers without a session."""
        return max(0, self.size - len(self.steps) - len(self.unmeasured))

    @property
    def together(self) -> bool:
        """True if the steps are as long on all workers, as they are where these exchange."""
        lengths = [one.step_ms for one in self.steps]
        return bool(lengths) and max(lengths) <= SAME_STEP * min(lengths)

    @property
    def longest(self) -> WorkersStep:
        """The worker with the longest step; there must be one."""
        return max(self.steps, key=lambda one: one.step_ms)

    @cached_property
    def straggler(self) -> WorkersStep | None:
        """The worker that the others wait for: its own work is longer, beyond all intervals."""
        if len(self.steps) < 2 or not self.together:
            return None
        *others, slowest = sorted(self.steps, key=lambda one: one.own_ms)
        apart = slowest.own_limits_ms[0] > max(one.own_limits_ms[1] for one in others)
        saved_ms = slowest.own_ms - others[-1].own_ms
        return slowest if apart and saved_ms >= STRAGGLES * slowest.step_ms else None

    @property
    def without_straggler(self) -> float | None:
        """The most that the job gains by a straggler whose work is as short as the next one's."""
        slowest = self.straggler
        if slowest is None:
            return None
        next_ms = max(one.own_ms for one in self.steps if one is not slowest)
        return bound(slowest.step_ms, slowest.own_ms - next_ms)

    def longer_classes(self, one: WorkersStep) -> list[tuple[StepClass, float]]:
        """Return the classes that take it longer than others on average, in ms, the most first."""
        others = [other for other in self.steps if other is not one]
        more = [
            (name, ms - fmean(other.classes_ms[name] for other in others))
            for name, ms in one.classes_ms.items()
            if name != "collective"
        ]
        return sorted((each for each in more if each[1] > 0), key=lambda each: -each[1])

    @property
    def evaluates_alone(self) -> WorkersStep | None:
        """The worker that evaluates for much of its run while no other one does."""
        if len(self.steps) < 2:
            return None
        *_, next_one, most = sorted(self.steps, key=lambda one: one.evaluation_percent)
        alone = next_one.evaluation_percent < INPUT_WAIT.value
        return most if alone and most.evaluation_percent >= INPUT_BOUND.value else None

    @property
    def uneven_batches(self) -> tuple[int, int] | None:
        """The fewest and the most batches of an epoch, where they differ by more than a tenth."""
        known = [one.batches for one in self.steps if one.batches is not None]
        if len(known) < 2 or max(known) <= SAME_STEP * min(known):
            return None
        return min(known), max(known)

    @property
    def sharding(self) -> Sharding | None:
        """The place at which all workers take their parts of the data; None where they differ."""
        found = {one.sharding for one in self.steps}
        return found.pop() if len(found) == 1 and self.size > 1 else None

    @property
    def exchange_percent(self) -> float:
        """Percent of the step in collectives on the worker that waits least: no wait for a peer."""
        return min(
            (100.0 * one.classes_ms["collective"] / one.step_ms for one in self.steps), default=0.0
        )


def job_of(sessions: Iterable[Session]) -> Job:
    """Return the job that these sessions are of; one after another, so that thousands may come.

    Raises:
        PipediagError: a session is of no worker, or two are of one.
    """
    steps: list[WorkersStep] = []
    unmeasured: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for session in sessions:
        worker, shares = session.environment.worker, session.breakdown
        if worker is None:
            raise PipediagError(
                f"The session of {session.script.path} is not from a worker: nothing in its "
                "environment names a job. Show it on its own."
            )
        if worker.name in sizes:
            raise PipediagError(
                f"Two sessions are from {worker.name}. Name the sessions of one job."
            )
        sizes[worker.name] = worker.size
        if session.steps is None or shares is None:
            reason = session.breakdown_missing or session.steps_missing
            unmeasured[worker.name] = reason or session.verdict.summary
            continue
        steps.append(
            WorkersStep(
                worker=worker,
                verdict=session.verdict,
                step_ms=session.steps.mean_ms,
                classes_ms={one: share.ms for one, share in shares.items()},
                exchange_limits_percent=shares["collective"].ci95_percent,
                evaluation_percent=session.run.percent_of("evaluation") if session.run else 0.0,
                batches=last.cardinality if (last := last_operation(session)) else None,
                sharding=_sharding(session),
            )
        )
    steps.sort(key=lambda one: (one.worker.rank is None, one.worker.rank or 0, one.worker.name))
    return Job(max(sizes.values(), default=0), steps, unmeasured)


def _sharding(session: Session) -> Sharding:
    shard = next((op for op in session.ops if op.kind == "shard"), None)
    if shard is None:
        return "none"
    before = [op for op in chain(session.ops, shard) if op is not shard]
    return "behind the work" if any(op.kind in _MAKES for op in before) else "before the work"
