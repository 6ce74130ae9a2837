"""Embedding tables: their size, how a step reads and writes them, and the ids it does that by."""

from __future__ import annotations

from pipediag.session.record import Record
from pipediag.vocabulary import SparseOrDense, StepPart


class EmbeddingIds(Record):
    """The ids that a table was looked up by in a few batches of the run.

    Nothing is said of batches that were not looked at.
    """

    batches: int
    """How many were looked at."""
    first_batch: int
    """The number of the first of them in the loop, counted from 1."""
    last_batch: int
    dtype: str
    """Of the ids in the batch, or where the step makes them."""
    lookups: int
    """Ids in all these batches together, of all replicas."""
    lookups_per_step: float
    unique: int
    """Different ids in all these batches."""
    unique_per_step: float
    """Mean number of different ids in a batch, which are the rows that a step needs; of several
    replicas, in the batch that they share."""
    smallest: int
    largest: int
    out_of_vocabulary_percent: float | None = None
    """Share of lookups by tokens that are unknown to the table of tokens in front, which the step
    has or the pipeline."""
    hot_rows: int
    """One in a hundred of the table's rows."""
    hot_percent: float
    """Share of these lookups that so many of the most frequent ids took. Of few lookups that is
    much, whatever the ids."""
    hot_percent_ahead: float | None = None
    """Share of the later half of the batches that ids took which were most frequent in the earlier
    half: what keeping these rows close would have met."""
    incomplete: str | None = None
    """Why some lookups of the table are not among these: of random negatives that the step draws by
    itself no batch tells the ids."""
    outside: int = 0
    """Lookups below 0 or past the last row."""
    outside_examples: list[tuple[int, int]] = []
    """Number of the batch, and id."""
    zero_percent: float | None = None
    """Share of lookups by id 0."""
    zeros_within: int = 0
    """Zeros with other ids before and behind them in one row of ids, where no padding stands."""
    zero_is_a_token: bool | None = None
    """True if the table of tokens in front gives 0 for a token; None where there is none, or that
    token may be a name for padding."""
    cast_through: str | None = None
    """The narrowest float type that the ids pass on their way."""
    cast_from: str | None = None
    """The integer type that they had before; None where they come as floats."""
    changed: int = 0
    """Lookups whose id came out of it as another."""
    changed_examples: list[tuple[int, int]] = []
    """The id before, and after."""
    collided: int = 0
    """Different ids that share a row with another for it."""


class Embedding(Record):
    """A table of vectors, and what a step does with it as its traced graph has it."""

    layer: str
    """The layer that has it, or the variable's own name."""
    rows: int
    dim: int
    dtype: str
    table_bytes: int
    slot_bytes: int | None
    """Of the optimizer's variables for it."""
    gradient: SparseOrDense | None
    """`sparse`: of the rows that were looked up."""
    update: SparseOrDense | None
    """`dense` where the step passes over the whole table, or a slot of it, to update it."""
    rows_touched_per_step: int | None
    """Mean number of different rows that a batch looks up; None where some lookups were not
    told."""
    trainable: bool = True
    missing: str | None = None
    """Why `gradient` and `update` are not known."""
    mask_zero: bool = False
    variable: str | None = None
    device: str | None = None
    lookups: int | None = None
    """Places in the step that look it up, each by other ids."""
    slots: int | None = None
    """Variables of the optimizer for it."""
    temporary_bytes: int | None = None
    """Of all tensors of the table's size that a step makes beside the variables, as if none shared
    its memory with another. Estimated from the graph: XLA makes fewer of them."""
    temporary_peak_bytes: int | None = None
    """Of those that are in memory at one time, as the graph has it: an operation that works element
    by element writes over an input that nothing else reads."""
    whole_table_operations: dict[str, int] = {}
    """Operations of the graph that make such a tensor, by type."""
    gradient_spread: bool | None = None
    """True if rows of the gradient are spread over a tensor of the table's size."""
    copied_on_lookup: bool | None = None
    """True if a lookup reads the whole variable first, which copies it where rows are scattered
    into it and XLA does not compile the step."""
    copied_bytes_per_step: int | None = None
    """What lookups copy of the table: all of it for each read of the variable, where rows are
    scattered into it and XLA does not compile the lookup."""
    regularizer: str | None = None
    """Class of the one over the whole table, where Keras' Embedding has it."""
    constraint: str | None = None
    file: str | None = None
    line: int | None = None
    """Where the script made the layer; None where that was not seen."""
    ids: EmbeddingIds | None = None
    ids_missing: str | None = None


NO_PROGRAM = (
    "The profile does not keep every program that XLA compiled, so that what those computed is not "
    "told apart."
)
"""Among `notes`: of what is told, each part may lack some."""


class PartName(Record):
    """A part of a step's compute, of one table where it is a table's."""

    part: StepPart
    layer: str | None = None
    """The table's layer, or the variable's own name, also of weights that a softmax over a
    vocabulary is taken of; None for what is no table's."""
    variable: str | None = None


class CostPart(PartName):
    """What one of them takes."""

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
