"""What a step's compute went into, in words, for the terminal and the page."""

from __future__ import annotations

from pipediag.reporters.words.quantities import measured
from pipediag.session.embedding_cost import CostPart, EmbeddingCost
from pipediag.vocabulary import StepPart

_NAMES: dict[StepPart, str] = {
    "lookup": "lookup",
    "copy": "copy of the whole table",
    "gradient": "gradient",
    "update": "optimizer's update",
    "regularizer": "regulariser or constraint",
    "vocabulary": "logits and loss over the vocabulary",
    "rest": "rest of the model",
    "not_told": "not told apart",
}
_AT_ONCE = 1.05
"""From how many operations at once on it is worth a word that their times overlap: own choice."""


def name(part: CostPart) -> str:
    """`lookup`, `rest of the model`."""
    return _NAMES[part.part]


def basis(cost: EmbeddingCost) -> str:
    """How the time was divided, as a sentence."""
    shared = (
        f" Where several ran at once, {measured(cost.overlap)} on average, each has an equal part "
        "of that time."
        if cost.overlap >= _AT_ONCE
        else ""
    )
    return f"By the operations of {cost.steps} profiled steps.{shared}"
