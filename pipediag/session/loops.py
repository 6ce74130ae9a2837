"""The loops of a script, with their steps and the tables that these use."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.session.pipeline import Pipeline
from pipediag.session.record import Interval, Record
from pipediag.session.recorded_loops import LoopFacts, TableFacts, TableUse
from pipediag.vocabulary import Contention, InputMethod, SparseOrDense, StepClass


class Steps(Record):
    count: int
    """Steps in the baseline window, without any profiler."""
    warmup_count: int
    mean_ms: float
    median_ms: float
    p95_ms: float
    ci95_ms: Interval
    """95 % interval of the median."""
    examples_per_s: float | None
    batch_size: int | None
    first_step_ms: float | None = None
    fill_ms: float | None = None
    """Wait for the first batch: iterator start and shuffle fill."""
    retraces: int = 0
    trace_count: int = 0
    boundaries: int = 0
    batches_per_call: int = 1
    stable: bool = True
    samples_ms: list[float] = []
    """Every baseline step, in order."""


class Share(Record):
    ms: float
    percent: float
    ci95_percent: Interval


class InputWait(Record):
    """Input wait by both methods, so that a reader can see whether they agree."""

    native_percent: float | None
    """Share from tf.data's own gap times, no profiler running."""
    native_ci95_percent: Interval | None
    trace_percent: float | None
    """Share from the profile: waiting in GetNext while no device computes."""
    method: InputMethod
    """The one that the breakdown uses."""
    contention: Contention | None = None
    """Cause of contention that slows the loop: a repeated batch then tells what input costs."""
    disagreement: str | None
    """Reason why the two differ, where they do."""
    contested_by_percent: float | None = None
    """Cost of input by a repeated batch, where that contradicts the share that is used."""
    unsettled: bool = False
    """True if the other method would give another verdict, and no better one can decide."""


class Perturbation(Record):
    baseline_step_ms: float
    profiled_step_ms: float | None
    ratio: float | None
    missing: str | None = None


class Ceiling(Record):
    speedup_if_input_free: float | None
    """Step divided by step without input wait, as the breakdown has them."""
    ci95: Interval | None = None
    next_bottleneck: StepClass | None
    missing: str | None = None


class Differential(Record):
    """The consumer alone on a repeated batch: what the step costs when input is free."""

    step_ms: float
    ci95_ms: Interval
    steps: int
    input_share_percent: float
    """100 * (1 - repeated-batch step / baseline step)."""


class StepRow(Record):
    """One step; the rows of steps.csv."""

    index: int
    window: str
    block: int
    start_ms: float
    duration_ms: float
    input_wait_ms: float | None
    batches: int


@dataclass(kw_only=True)
class Loop(LoopFacts):
    """A place in the script that consumes batches."""

    diagnosed: bool
    elapsed_s: float
    """Time from the first request to the last hand-over, without what pipediag took."""
    median_step_ms: float | None = None
    projected_s: float | None = None
    """Time of the whole loop by the ledger of the run; None where that is of less."""
    epoch_ends: int = 0
    filled_cache_op_id: str | None = None
    """The cache that its measured steps filled, so that they stand for no later epoch."""
    pipeline: Pipeline | None = None
    """Pipeline that it reads, as written; only of a loop that does not train."""


@dataclass(kw_only=True)
class Embedding(TableUse, TableFacts):
    """A table of vectors, and what a step does with it as its traced graph has it."""

    table_bytes: int
    update: SparseOrDense | None
    """`dense` where the step passes over the whole table, or a slot of it, to update it."""
    rows_touched_per_step: int | None
    """Mean number of different rows that a batch looks up; None where not all lookups are known."""
    missing: str | None = None
    """Reason why `gradient` and `update` are not known."""
    copied_bytes_per_step: int | None = None
    """All of the table for each read, where rows are scattered into it without XLA."""
    passes_ms: float | None = None
    """Time of a step in operations on all of the table or its slots, and in writing rows; None
    where the profile does not have it, or XLA fused these with others."""
    copy_ms: float | None = None
    """Time of a step in reading and casting all of the table for lookups; None as above."""


class TextWork(Record):
    """Operations of the step's graph that split, hash, look up or decode."""

    percent: float
    """Percent of the profiled step in which any of them ran."""
    ms: float
    """Time of that share in the mean step without a profiler."""
