"""Blocks of steps in rounds: their throughput, their ratios, and what they cost in time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, TypeVar

from pipediag.estimates import Estimate, estimate
from pipediag.facts.run_gain import ONCE_OFF, Taken
from pipediag.session.edits import ANEW, Change, CompileFunction, SetModel, traces_otherwise
from pipediag.session.messages import BlockRun, Prepared, RunBlock
from pipediag.session.trials import Basis, Consumer, TrialBlock
from pipediag.trials import (
    Executor,
    ExecutorLostError,
    OnEvent,
    ScriptFinishedError,
    Trying,
    Variant,
    VariantRefusedError,
)
from pipediag.vocabulary import BASE, ON_TOP

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
on two cores of a small machine. A model that ran eagerly has none before an edit traces it."""

MADE_ANEW = 0.1
"""Share of the time left that tracing the step as written once more may take. Own choice."""

_SEED = 20240229
_Answer = TypeVar("_Answer")


class TrialsEndedError(Exception):
    """Error, caused by `variant` if there is one, after which no block can be run."""

    def __init__(self, variant: str | None, reason: str) -> None:
        self.variant = variant
        super().__init__(reason)


def _base_refused(reason: VariantRefusedError) -> TrialsEndedError:
    """Return the error for a base that can't be run, so that there is nothing to compare with."""
    return TrialsEndedError(BASE, f"The pipeline as written can't be run for a trial: {reason}")


@dataclass(frozen=True)
class TakenBy:
    """Consumer of a block's batches, which decides how its throughput is computed."""

    basis: Basis = "step"
    epoch_examples: float | None = None
    """Examples of one epoch, where whole epochs are compared."""
    consumer_ms: float = 0.0
    """Time of the rest of a step, with which input overlaps, without a loop; 0 if not known."""
    why: str = "The training loop can't be run by itself"
    """Reason why no step was made, where there is no loop, as the start of a sentence."""
    left_out: tuple[str, ...] = ()
    """Sentences on what all variants leave out, the base too."""

    @property
    def consumer(self) -> Consumer:
        return "pipeline alone" if self.basis == "pipeline" else "training"

    @property
    def caveats(self) -> list[str]:
        if self.basis != "pipeline":
            return list(self.left_out)
        rest = "what the rest of a step takes is not known."
        if self.consumer_ms:
            rest = (
                f"a step was taken as the longer of a batch and the {self.consumer_ms:.1f} ms that "
                "the rest of the step took."
            )
        return [f"{self.why}: the pipeline was measured alone, and {rest}", *self.left_out]

    def examples_per_s(self, block: BlockRun) -> float:
        """Return the throughput of steps, or of an epoch with the wait for its first batch."""
        if self.basis == "pipeline":
            return block.examples / block.batches / max(self.consumer_ms, block.step_ms) * 1e3
        if self.epoch_examples is None:
            return block.examples_per_s
        first = block.first_batches * block.examples / block.batches
        left_s = max(0.0, self.epoch_examples - first) / block.examples_per_s
        return self.epoch_examples / ((block.first_ns or 0) / 1e9 + left_s)


@dataclass
class Ratios:
    """Throughput of one variant over that of another, by their blocks of each round."""

    taken_by: TakenBy
    pairs: list[tuple[BlockRun, BlockRun]] = field(default_factory=list)

    @property
    def steps(self) -> list[float]:
        per_s = self.taken_by.examples_per_s
        return [per_s(block) / per_s(other) for block, other in self.pairs]

    @property
    def pulled(self) -> list[float]:
        """Return the ratios of the batches as they came."""
        return [block.examples_per_s / other.examples_per_s for block, other in self.pairs]


def makes_graph(changes: Iterable[Change]) -> bool:
    """Return True if the changes trace a step that ran eagerly."""
    return any(
        isinstance(change, CompileFunction)
        or (isinstance(change, SetModel) and change.settings.get("run_eagerly") is False)
        for change in changes
    )


@dataclass
class Bench:
    """Runs blocks on one executor within one budget of time, and keeps them.

    Methods that run something raise VariantRefusedError where the variant fails, and
    TrialsEndedError where the executor is gone.
    """

    executor: Executor
    taken_by: TakenBy
    budget_s: float
    clock: Callable[[], float]
    on_event: OnEvent
    began_s: float
    one_length: bool = True
    """True if all batches have one length: XLA compiles for each, and the first step shows one."""
    blocks: list[TrialBlock] = field(default_factory=list)
    base_blocks: list[BlockRun] = field(default_factory=list)
    building_s: float = 0.0
    """Time to build a variant: as long as for the base, whose caches are filled too."""
    traces: dict[str, int | None] = field(default_factory=dict)
    """Number of traces of a variant's `tf.function`, by the variant, if it changes its tracing."""
    first_ns: dict[str, int] = field(default_factory=dict)
    """Duration of the first step of each variant, by its name."""
    lost: TrialsEndedError | None = None
    """The error with which the executor was lost."""

    def __post_init__(self) -> None:
        self._order = random.Random(_SEED)
        self._rounds = 0
        self._walls: dict[str, float] = {}
        self._steps_ms: dict[str, float] = {}
        self._labels: dict[str, str] = {BASE: BASE_LABEL}

    def used_s(self) -> float:
        return self.clock() - self.began_s

    def left_s(self) -> float:
        return self.budget_s - self.used_s()

    def prepare(self, variant: Variant, label: str) -> Prepared:
        self._labels[variant.name] = label
        self._announce(variant)
        prepared = self._guarded(variant, lambda: self.executor.prepare(variant))
        if prepared.first_ns is not None:
            self.first_ns[variant.name] = prepared.first_ns
        return prepared

    def retrace_base_for(self, changes: Sequence[Change], took_s: float, left_s: float) -> None:
        """Trace the step as written once more, at most once, to compare with an edit's own trace,
        which took so long, if enough time is left for rounds."""
        traced = traces_otherwise(changes) and not makes_graph(changes)
        if traced and took_s <= MADE_ANEW * left_s and RETRACED.name not in self._labels:
            with suppress(VariantRefusedError):
                self.prepare(RETRACED, RETRACED_LABEL)

    def speed_up(self, variant: Variant, ratios: Ratios, step: Estimate) -> dict[str, Any]:
        """Return the fields of a `SpeedUp`."""
        found: dict[str, Any] = {
            "speedup": round(step.value, 4),
            "ci95": step.interval,
            "blocks": step.rounds,
            "basis": self.taken_by.basis,
        }
        if self.taken_by.basis == "pipeline":
            alone = estimate(ratios.pulled)
            found |= {"pipeline_speedup": round(alone.value, 4), "pipeline_ci95": alone.interval}
        if once := self.once(variant):
            ends_s = (once.seconds - once.off_s, once.seconds, once.seconds + once.off_s)
            low_s, once_s, high_s = (round(end_s, 4) for end_s in ends_s)
            found |= {"once_s": once_s, "once_ci95_s": (low_s, high_s)}
        return found

    def once(self, variant: Variant) -> Taken | None:
        """Return the extra time that tracing and compiling an edit's training step costs a run
        once, which may be negative; None where that was not measured.

        It is the first step of a variant less the first steps of its later blocks, and less the
        same of the script's own step, traced once more, which the run takes already. Both are later
        traces of one process, so neither holds the extra time of a process's first trace.
        """
        if not (self.one_length and traces_otherwise(variant.changes)):
            return None
        as_it_is: Taken | None = Taken(-FIRST_TRACE_S / 2, FIRST_TRACE_S / 2)
        if not makes_graph(variant.changes):
            as_it_is = self._traced(RETRACED.name, BASE)
        taken = self._traced(variant.name, variant.name)
        return taken + as_it_is.share(-1.0) if taken is not None and as_it_is is not None else None

    def _traced(self, name: str, like: str) -> Taken | None:
        first_ms = [one.first_step_ms for one in self.blocks if one.arm == like]
        later_s = [one / 1e3 for one in first_ms if one is not None]
        if name not in self.first_ns or not later_s:
            return None
        first_s = self.first_ns[name] / 1e9
        waited = Taken(-fmean(later_s), (max(later_s) - min(later_s)) / 2.0)
        return Taken(first_s, ONCE_OFF * first_s) + waited

    def prepare_base(self) -> None:
        """Build the pipeline as written, and run a block of it, which shows what a round costs."""
        try:
            begin = self.clock()
            self.prepare(BASE_VARIANT, BASE_LABEL)
            self.building_s = self.clock() - begin
            self.block(BASE_VARIANT)
        except VariantRefusedError as error:
            raise _base_refused(error) from error

    def round(
        self, variants: Sequence[Variant], seconds: float = BLOCK_S
    ) -> tuple[dict[str, BlockRun], dict[str, str]]:
        """Return one block of each variant, by its name, and the reasons of those that failed."""
        self._rounds += 1
        blocks: dict[str, BlockRun] = {}
        refused: dict[str, str] = {}
        for variant in self._order.sample(list(variants), len(variants)):
            try:
                blocks[variant.name] = self.block(variant, seconds)
            except VariantRefusedError as error:
                if variant.name == BASE:
                    raise _base_refused(error) from error
                refused[variant.name] = str(error)
        return blocks, refused

    def block(self, variant: Variant, seconds: float = BLOCK_S) -> BlockRun:
        self._announce(variant)
        begin = self.clock()
        taken_by = self.taken_by
        alone = taken_by.basis == "pipeline"
        block = self._run(variant, RunBlock(variant.name, seconds, alone, taken_by.epoch_examples))
        self._walls[variant.name] = self.clock() - begin
        self._steps_ms[variant.name] = block.step_ms
        self.traces[variant.name] = block.traces
        if variant.name == BASE:
            self.base_blocks.append(block)
        self.blocks.append(
            TrialBlock(
                arm=variant.name,
                round=self._rounds,
                examples_per_s=round(block.examples_per_s, 3),
                batches=block.batches,
                duration_ms=round(block.elapsed_ns / 1e6, 3),
                first_step_ms=None if block.first_ns is None else round(block.first_ns / 1e6, 3),
            )
        )
        return block

    def pull_base(self, seconds: float) -> BlockRun:
        return self._run(BASE_VARIANT, RunBlock(BASE, seconds, alone=True))

    def cost_s(self, variants: Iterable[Variant]) -> float:
        """Return the time of a round of these variants, by their last blocks, or as expected."""
        return sum(self._walls.get(one.name) or self._expected_s(one) for one in variants)

    def takes_long(self, variant: Variant) -> bool:
        return self._expected_s(variant) > 2.0 * self.cost_s([BASE_VARIANT])

    def _expected_s(self, variant: Variant) -> float:
        # An edit on top of others is taken to cost what these do without it.
        without = variant.name.rpartition(ON_TOP)[0]
        name = without if without in self._walls else BASE
        block_s = self._walls.get(name, BLOCK_S)
        if name not in self._steps_ms:
            return block_s
        models = [one.settings for one in variant.changes if isinstance(one, SetModel)]
        steps = max((int(one.get("steps_per_execution") or 1) for one in models), default=1)
        return max(block_s, FEWEST_CALLS * steps * self._steps_ms[name] / 1e3)

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
            reason = f"The trials ended while trying {self._labels[variant.name]}: {error}"
            blamed = None if isinstance(error, ScriptFinishedError) else variant.name
            self.lost = TrialsEndedError(blamed, reason)
            raise self.lost from error
