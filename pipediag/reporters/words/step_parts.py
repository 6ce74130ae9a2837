"""What a step's compute went into, in words, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.reporters.words.quantities import measured, milliseconds
from pipediag.session.embeddings import EmbeddingCost, PartName
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


_MOST_FUSED, _LEAST_FUSED_PERCENT = 3, 1.0
"""Own choice: what is less would be shown as a part of 0 %."""


def name(part: PartName) -> str:
    """`lookup`, `rest of the model`."""
    return _NAMES[part.part]


def fused(cost: EmbeddingCost) -> Iterator[str]:
    """What of the time that is not told apart XLA computes as one, the largest first."""
    for one in cost.fused[:_MOST_FUSED]:
        if one.percent >= _LEAST_FUSED_PERCENT:
            together = ", ".join(map(_of_table, one.parts))
            yield f"Fused by XLA and not told apart, {one.percent:.0f} %: {together}."


def _of_table(part: PartName) -> str:
    return f"{_NAMES[part.part]} of `{part.layer}`" if part.layer else _NAMES[part.part]


def largest(session: Session) -> str | None:
    """What most of a compute-bound step goes into, where a table or the vocabulary is that."""
    cost = session.embedding_cost
    if cost is None or session.verdict.bottleneck != "compute":
        return None
    part = max(cost.parts, key=lambda one: one.ms, default=None)
    if part is None or part.part in _OF_NO_TABLE or part.percent < LEAST_PERCENT:
        return None
    share = f"{milliseconds(part.ms)}, {part.percent:.0f} % of the compute"
    return f"Most of that is the {_of_table(part)}: {share}."


def basis(cost: EmbeddingCost) -> str:
    """How the time was divided, as a sentence."""
    shared = (
        f" Where several ran at once, {measured(cost.overlap)} on average, each has an equal part "
        "of that time."
        if cost.overlap >= _AT_ONCE
        else ""
    )
    return f"By the operations of {cost.steps} profiled steps.{shared}"
