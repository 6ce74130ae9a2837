"""Embedding tables: their size, how a step reads and writes them, and the ids it does that by."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.session.record import Record
from pipediag.session.recorded_loops import TableFacts, TableUse
from pipediag.vocabulary import SparseOrDense, StepPart


@dataclass(kw_only=True)
class Embedding(TableUse, TableFacts):
    """A table of vectors, and what a step does with it as its traced graph has it."""

    table_bytes: int
    update: SparseOrDense | None
    """`dense` where the step passes over the whole table, or a slot of it, to update it."""
    rows_touched_per_step: int | None
    """Mean number of different rows that a batch looks up; None where not all lookups are known."""
    missing: str | None = None
    """Why `gradient` and `update` are not known."""
    copied_bytes_per_step: int | None = None
    """What lookups copy of the table: all of it for each read of the variable, where rows are
    scattered into it and XLA does not compile the lookup."""


NO_PROGRAM = (
    "The profile does not keep every program that XLA compiled, so their work can't be "
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
