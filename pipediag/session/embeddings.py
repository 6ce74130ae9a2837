"""Embedding tables: their size, how a step reads and writes them, and the ids it does that by."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipediag.session.record import Record
from pipediag.session.recorded_loops import IdFacts, TableFacts
from pipediag.vocabulary import SparseOrDense, StepPart


@dataclass(kw_only=True)
class EmbeddingIds(IdFacts):
    """The ids that a table was looked up by in a few batches of the run, and no others."""

    batches: int
    """How many were looked at."""
    first_batch: int
    """The number of the first of them in the loop, counted from 1."""
    last_batch: int
    lookups_per_step: float
    unique_per_step: float
    """Mean number of different ids in a batch, which are the rows that a step needs; of several
    replicas, in the batch that they share."""
    hot_percent: float
    """Share of these lookups by the most frequent ids, as many as one in a hundred of the table's
    rows: much, whatever the ids, where the lookups are few."""
    hot_percent_ahead: float | None = None
    """Share of the later half of the batches by ids that were most frequent in the earlier half."""
    zero_percent: float | None = None
    """Share of lookups by id 0."""


@dataclass(kw_only=True)
class Embedding(TableFacts):
    """A table of vectors, and what a step does with it as its traced graph has it."""

    table_bytes: int
    slot_bytes: int | None
    """Of the optimizer's variables for it."""
    gradient: SparseOrDense | None
    """`sparse`: of the rows that were looked up."""
    update: SparseOrDense | None
    """`dense` where the step passes over the whole table, or a slot of it, to update it."""
    rows_touched_per_step: int | None
    """Mean number of different rows that a batch looks up; None where not all lookups are known."""
    missing: str | None = None
    """Why `gradient` and `update` are not known."""
    variable: str | None = None
    device: str | None = None
    lookups: int | None = None
    """Places in the step that look it up, each by other ids."""
    temporary_bytes: int | None = None
    """Of all tensors of the table's size that a step makes beside the variables, as if none shared
    its memory with another. Estimated from the graph: XLA makes fewer of them."""
    temporary_peak_bytes: int | None = None
    """Of those that are in memory at one time, at most: an operation that works element by element
    writes over an input that nothing else reads."""
    whole_table_operations: dict[str, int] = field(default_factory=dict)
    """Operations of the graph that make such a tensor, by type."""
    gradient_spread: bool | None = None
    """True if rows of the gradient are spread over a tensor of the table's size."""
    copied_on_lookup: bool | None = None
    """True if a lookup reads the whole variable first."""
    copied_bytes_per_step: int | None = None
    """What lookups copy of the table: all of it for each read of the variable, where rows are
    scattered into it and XLA does not compile the lookup."""
    ids: EmbeddingIds | None = None
    ids_missing: str | None = None


NO_PROGRAM = (
    "The profile does not keep every program that XLA compiled, so that what those computed is not "
    "distinguished."
)
"""Among `notes`: each part may lack some of its time."""


class PartName(Record):
    """A part of a step's compute, of one table where it is a table's."""

    part: StepPart
    layer: str | None = None
    """The table's layer, or the variable's own name, also of weights that a softmax over a
    vocabulary is taken of; None for what is no table's."""
    variable: str | None = None


class CostPart(PartName):
    """Time that one of them takes."""

    ms: float
    percent: float
    """Of the compute; those of all parts add up to 100."""


class FusedParts(Record):
    """Several parts that XLA computes as one, whose shares are not known."""

    parts: list[PartName]
    ms: float
    """Of a step; what is `not_told` holds it."""
    percent: float
    """Of the compute."""


class EmbeddingCost(Record):
    """The compute of a step, divided."""

    compute_ms: float
    """Of the step, as `breakdown` has it; the parts add up to it."""
    steps: int
    """Profiled steps that the shares come from."""
    overlap: float
    """How many operations ran at once, on average, while anything was computed: their times added
    up are longer by this factor. Of a moment in which several ran, each has an equal part."""
    parts: list[CostPart]
    """The largest first."""
    fused: list[FusedParts] = []
    """What of `not_told` XLA made of several parts, the largest first."""
    notes: list[str] = []
    """What could not be attributed, and why."""


class TextWork(Record):
    """Operations of the step's graph that split, hash, look up or decode."""

    percent: float
    """Of the profiled step, in which any of them ran."""
    ms: float
    """The same of the mean step without a profiler."""
    operations: dict[str, float] = {}
    """Percent of the step by type, the largest first; what runs at once counts for each."""
