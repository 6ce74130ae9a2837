"""What the steps' compute went into, as far as embedding tables are concerned."""

from __future__ import annotations

from pipediag.session.record import Record
from pipediag.vocabulary import StepPart


class CostPart(Record):
    """One part of a step's compute, of one table where it is a table's."""

    part: StepPart
    layer: str | None = None
    """The table's layer, or the variable's own name, also of weights that a softmax over a
    vocabulary is taken of; None for what is no table's."""
    variable: str | None = None
    ms: float
    percent: float
    """Of the compute; those of all parts add up to 100."""


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
    notes: list[str] = []
    """What could not be told apart, and why."""
