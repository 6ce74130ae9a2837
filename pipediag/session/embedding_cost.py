"""What the steps' compute went into, as far as embedding tables are concerned."""

from __future__ import annotations

from pipediag.session.record import Record
from pipediag.vocabulary import StepPart

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
    """Several parts that XLA computes as one, of which none is told apart."""

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
    """What could not be told apart, and why."""
