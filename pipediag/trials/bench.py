"""Blocks of steps in rounds: their throughput, their ratios, and what they cost in time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, TypeVar

from pipediag.estimates import Decision, Estimate, estimate, look
from pipediag.facts.run_gain import ONCE_OFF, Taken
from pipediag.session.edits import ANEW, Change, CompileFunction, SetModel, traces_otherwise
from pipediag.session.messages import BlockRun, Prepared, RunBlock
from pipediag.session.trials import Basis, Consumer, SpeedUp, TrialBlock
from pipediag.trials import (
    Executor,
    ExecutorLostError,
    OnEvent,
    Trying,
    Variant,
    VariantRefusedError,
)
from pipediag.vocabulary import BASE

BLOCK_S = 0.4
"""Measured part of a block: long against a step, short against the drift of a machine. The process
that runs it makes it longer where that would be fewer than five steps."""

FEWEST_CALLS = 5
"""Calls of the step in a block, however long they take; see capture/trying/protocol.py."""

BASE_VARIANT = Variant(BASE)
BASE_LABEL = "the pipeline as written"
RETRACED = Variant("base made anew", (SetModel({ANEW: True}),))
RETRACED_LABEL = "the step as written, traced once more"

FIRST_TRACE_S = 0.4
"""Seconds that the first trace of a process takes more than a later one of the same step: up to 0.4
on two cores of a small machine, 0.6 s instead of 0.2 to 0.3 s. An edit that traces a model which
ran eagerly makes the run pay for that too."""

_SEED = 20240229
_Answer = TypeVar("_Answer")


class BaseRefusedError(Exception):
    """The pipeline as written can't be run, so there is nothing to compare with."""

    variant = BASE

    def __init__(self, reason: object) -> None:
        super().__init__(f"The pipeline as written can't be run for a trial: {reason}")


class LostError(Exception):
    """The executor was lost while it ran this variant."""

    def __init__(self, variant: str, label: str, reason: str) -> None:
        self.variant = variant
        super().__init__(f"The trials ended while trying {label}: {reason}")


@dataclass(frozen=True)
class TakenBy:
    """Consumer of a block's batches, which decides how its throughput is computed."""

    basis: Basis = "step"
    epoch_examples: float | None = None
    """Examples of one epoch, where whole epochs are compared."""
    consumer_ms: float = 0.0
    """Without a loop: time that the rest of a step takes; 0 where that is not known. Input and
    consumer overlap, so a step takes as long as the slower of the two."""
    why: str = "The training loop can't be run by itself"
    """Without a loop: why no step was made, as the start of a sentence."""
    left_out: tuple[str, ...] = ()
    """Sentences on what all variants leave out, the base too."""

    @property
    def consumer(self) -> Consumer:
        return "pipeline alone" if self.basis == "pipeline" else "training"

    @property
    def caveats(self) -> list[str]:
        if self.basis != "pipeline":
            return list(self.left_out)
        rest = (
            f"a step was taken as the longer of a batch and the {self.consumer_ms:.1f} ms that the "
            "rest of the step took."
            if self.consumer_ms
            else "what the rest of a step takes is not known."
        )
        return [f"{self.why}: the pipeline was measured alone, and {rest}", *self.left_out]

    def block(self, variant: Variant, seconds: float) -> RunBlock:
        alone = self.basis == "pipeline"
        return RunBlock(variant.name, seconds, alone, self.epoch_examples)

    def step_ms(self, block: BlockRun) -> float:
        return max(self.consumer_ms, block.step_ms)

    def examples_per_s(self, block: BlockRun) -> float:
        """Return the throughput of steps, or of an epoch with the wait for its first batch."""
        if self.basis == "pipeline":
            return block.examples / block.batches / self.step_ms(block) * 1e3
        if self.epoch_examples is None:
            return block.examples_per_s
        first = block.first_batches * block.examples / block.batches
        left_s = max(0.0, self.epoch_examples - first) / block.examples_per_s
        return self.epoch_examples / ((block.first_ns or 0) / 1e9 + left_s)


@dataclass(frozen=True)
class Round:
    """One block of each variant, by its name."""

    blocks: dict[str, BlockRun] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons of the variants that failed."""


@dataclass
class Ratios:
    """Throughput of one variant over that of another, one ratio for each round."""

    taken_by: TakenBy
    steps: list[float] = field(default_factory=list)
    pulled: list[float] = field(default_factory=list)
    """Ratios of the batches as they came; the same as `steps` where steps were measured."""

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, found: Round, variant: Variant, to: Variant) -> None:
        block, other = found.blocks[variant.name], found.blocks[to.name]
        per_s = self.taken_by.examples_per_s
        self.steps.append(per_s(block) / per_s(other))
        self.pulled.append(block.examples_per_s / other.examples_per_s)

    def look(self, *, last: bool = False) -> Decision | None:
        return look(self.steps, last=last)


@dataclass
class FirstCalls:
    """Time that an edit costs a run once: its training step is traced and compiled otherwise.

    It is the first step of a variant less what the first steps of its later blocks take, which is
    the wait for a batch and the step itself. The same of the script's own step, traced once more,
    is what the run takes already. Both are later traces of one process, so neither holds the extra
    time of a process's first trace.
    """

    one_length: bool = True
    """True if all batches have one length: XLA compiles for each, and the first step shows one."""
    first_ns: dict[str, int] = field(default_factory=dict)
    """First step of each variant, by its name."""

    def once(self, variant: Variant, blocks: Sequence[TrialBlock]) -> Taken | None:
        """Return what the run takes once more with the variant, less than nothing where it takes
        less; None where nothing is traced otherwise, or that was not measured."""
        if not (self.one_length and traces_otherwise(variant.changes)):
            return None
        taken = self._traced(variant.name, variant.name, blocks)
        as_it_is = (
            Taken(-FIRST_TRACE_S / 2, FIRST_TRACE_S / 2)
            if makes_graph(variant.changes)
            else self._traced(RETRACED.name, BASE, blocks)
        )
        return taken + as_it_is.share(-1.0) if taken is not None and as_it_is is not None else None

    def _traced(self, name: str, like: str, blocks: Iterable[TrialBlock]) -> Taken | None:
        later_s = [
            block.first_step_ms / 1e3
            for block in blocks
            if block.arm == like and block.first_step_ms is not None
        ]
        if name not in self.first_ns or not later_s:
            return None
        first_s = self.first_ns[name] / 1e9
        waited = Taken(-fmean(later_s), (max(later_s) - min(later_s)) / 2.0)
        return Taken(first_s, ONCE_OFF * first_s) + waited


def makes_graph(changes: Iterable[Change]) -> bool:
    """Return True if a step that ran eagerly is traced."""
    return any(
        isinstance(change, CompileFunction)
        or (isinstance(change, SetModel) and change.settings.get("run_eagerly") is False)
        for change in changes
    )


class Bench:
    """Runs blocks on one executor within one budget of time, and keeps them.

    Methods that run something raise VariantRefusedError where the variant fails, and LostError
    where the executor is gone.
    """

    def __init__(
        self,
        executor: Executor,
        taken_by: TakenBy,
        budget_s: float,
        clock: Callable[[], float],
        on_event: OnEvent,
        began_s: float,
        first_calls: FirstCalls,
    ) -> None:
        self.executor = executor
        self.taken_by = taken_by
        self.budget_s = budget_s
        self.on_event = on_event
        self.blocks: list[TrialBlock] = []
        self.base_blocks: list[BlockRun] = []
        self.building_s = 0.0
        """Time that building a variant takes: as long as the base took, whose caches are filled
        too."""
        self.traces: dict[str, int | None] = {}
        """By variant: how many its `tf.function` has, if the variant changes its tracing."""
        self.lost: LostError | None = None
        self._clock = clock
        self._order = random.Random(_SEED)
        self._started = began_s
        self._rounds = 0
        self._walls: dict[str, float] = {}
        self._first_calls = first_calls
        self._labels: dict[str, str] = {BASE: BASE_LABEL}

    def used_s(self) -> float:
        return self._clock() - self._started

    def left_s(self) -> float:
        return self.budget_s - self.used_s()

    def prepare(self, variant: Variant, label: str) -> Prepared:
        self._labels[variant.name] = label
        self._announce(variant)
        prepared = self._guarded(variant, lambda: self.executor.prepare(variant))
        if prepared.first_ns is not None:
            self._first_calls.first_ns[variant.name] = prepared.first_ns
        return prepared

    def retrace_base(self) -> None:
        """Have the step as written traced once more, for what that takes; once at most, and not
        again where it is refused."""
        if RETRACED.name not in self._labels:
            with suppress(VariantRefusedError):
                self.prepare(RETRACED, RETRACED_LABEL)

    def speed_up(self, variant: Variant, ratios: Ratios, step: Estimate) -> dict[str, Any]:
        alone = estimate(ratios.pulled) if self.taken_by.basis == "pipeline" else None
        once = self._first_calls.once(variant, self.blocks)
        off_s = once.off_s if once else 0.0
        found = SpeedUp(
            speedup=round(step.value, 4),
            ci95=step.interval,
            blocks=step.rounds,
            basis=self.taken_by.basis,
            pipeline_speedup=round(alone.value, 4) if alone else None,
            pipeline_ci95=alone.interval if alone else None,
            once_s=round(once.seconds, 4) if once else None,
            once_ci95_s=(round(once.seconds - off_s, 4), round(once.seconds + off_s, 4))
            if once
            else None,
        )
        return dict(found)

    def prepare_base(self) -> None:
        """Have the pipeline as written built, and run a block, which tells what a round costs."""
        try:
            begin = self._clock()
            self.prepare(BASE_VARIANT, BASE_LABEL)
            self.building_s = self._clock() - begin
            self.block(BASE_VARIANT)
        except VariantRefusedError as error:
            raise BaseRefusedError(error) from error

    def round(self, variants: Sequence[Variant], seconds: float = BLOCK_S) -> Round:
        self._rounds += 1
        found = Round()
        for variant in self._order.sample(list(variants), len(variants)):
            try:
                found.blocks[variant.name] = self.block(variant, seconds)
            except VariantRefusedError as error:
                if variant.name == BASE:
                    raise BaseRefusedError(error) from error
                found.refused[variant.name] = str(error)
        return found

    def block(self, variant: Variant, seconds: float = BLOCK_S) -> BlockRun:
        self._announce(variant)
        begin = self._clock()
        block = self._run(variant, self.taken_by.block(variant, seconds))
        self._walls[variant.name] = self._clock() - begin
        duration_ms = block.elapsed_ns / 1e6
        since_began_ms = self.used_s() * 1e3 - duration_ms
        self.traces[variant.name] = block.traces
        if variant.name == BASE:
            self.base_blocks.append(block)
        self.blocks.append(
            TrialBlock(
                arm=variant.name,
                round=self._rounds,
                examples_per_s=round(block.examples_per_s, 3),
                batches=block.batches,
                duration_ms=round(duration_ms, 3),
                first_step_ms=None if block.first_ns is None else round(block.first_ns / 1e6, 3),
                since_began_ms=round(since_began_ms, 3),
            )
        )
        return block

    def pull_base(self, seconds: float) -> BlockRun:
        return self._run(BASE_VARIANT, RunBlock(BASE, seconds, alone=True))

    def cost_s(self, variants: Iterable[Variant]) -> float:
        """Return what a round of these takes, by their last blocks; an unknown one as the base, or
        as long as several steps in one call take."""
        return sum(self._walls.get(one.name) or self._expected_s(one) for one in variants)

    def takes_long(self, variant: Variant) -> bool:
        return self._expected_s(variant) > 2.0 * self.cost_s([BASE_VARIANT])

    def _expected_s(self, variant: Variant) -> float:
        base_s = self._walls.get(BASE, BLOCK_S)
        if not self.base_blocks:
            return base_s
        models = [one.settings for one in variant.changes if isinstance(one, SetModel)]
        steps = max((int(one.get("steps_per_execution") or 1) for one in models), default=1)
        at_once_s = steps * self.base_blocks[-1].step_ms / 1e3
        return max(base_s, FEWEST_CALLS * at_once_s)

    def _run(self, variant: Variant, command: RunBlock) -> BlockRun:
        block = self._guarded(variant, lambda: self.executor.run(command))
        if block.batches <= 0 or block.examples <= 0 or block.elapsed_ns <= 0:
            raise VariantRefusedError("It delivered no batch while it was timed.")
        return block

    def _announce(self, variant: Variant) -> None:
        self.on_event(Trying(self._labels[variant.name], left_s=max(0.0, self.left_s())))

    def _guarded(self, variant: Variant, call: Callable[[], _Answer]) -> _Answer:
        try:
            return call()
        except ExecutorLostError as error:
            self.lost = LostError(variant.name, self._labels[variant.name], str(error))
            raise self.lost from error
