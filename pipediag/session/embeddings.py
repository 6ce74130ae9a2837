"""Embedding tables: their size, how a step reads and writes them, and the ids it does that by."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.session.record import Record
from pipediag.session.recorded_loops import TableFacts, TableUse
from pipediag.vocabulary import SparseOrDense


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
    passes_ms: float | None = None
    """Time of a step in operations on all of the table or its slots, such as its optimizer's and a
    regulariser's, and in writing rows; None where the profile does not have it, or XLA fused these
    with others."""
    copy_ms: float | None = None
    """Time of a step in reading and casting all of the table for lookups; None as above."""


class TextWork(Record):
    """Operations of the step's graph that split, hash, look up or decode."""

    percent: float
    """Of the profiled step, in which any of them ran."""
    ms: float
    """The same of the mean step without a profiler."""
    operations: dict[str, float] = {}
    """Percent of the step by type, the largest first; what runs at once counts for each."""
