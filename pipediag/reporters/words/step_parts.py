"""What a step's compute went into, in words, for the terminal and the page."""

from __future__ import annotations

from pipediag.reporters.words.quantities import measured, milliseconds
from pipediag.session.embedding_cost import CostPart, EmbeddingCost
from pipediag.session.model import Session
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
_OF_NO_TABLE: frozenset[StepPart] = frozenset({"rest", "not_told"})
LEAST_PERCENT = 50.0
"""Of a step's compute: from there on it is most of it."""
_AT_ONCE = 1.05
"""From how many operations at once on it is worth a word that their times overlap: own choice."""


def name(part: CostPart) -> str:
    """`lookup`, `rest of the model`."""
    return _NAMES[part.part]


def largest(session: Session) -> str | None:
    """What most of a compute-bound step goes into, where a table or the vocabulary is that."""
    cost = session.embedding_cost
    if cost is None or session.verdict.bottleneck != "compute":
        return None
    part = max(cost.parts, key=lambda one: one.ms, default=None)
    if part is None or part.part in _OF_NO_TABLE or part.percent < LEAST_PERCENT:
        return None
    of_table = f" of `{part.layer}`" if part.layer else ""
    share = f"{milliseconds(part.ms)}, {part.percent:.0f} % of the compute"
    return f"Most of that is the {_NAMES[part.part]}{of_table}: {share}."


def basis(cost: EmbeddingCost) -> str:
    """How the time was divided, as a sentence."""
    shared = (
        f" Where several ran at once, {measured(cost.overlap)} on average, each has an equal part "
        "of that time."
        if cost.overlap >= _AT_ONCE
        else ""
    )
    return f"By the operations of {cost.steps} profiled steps.{shared}"
