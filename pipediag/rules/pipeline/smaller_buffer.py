"""A smaller buffer for a shuffle: it fills sooner, and mixes less."""

from __future__ import annotations

import math

from pipediag.facts.pipeline import following_batch, place_name, upstream
from pipediag.rules.pipeline.small_shuffle import COVERAGE
from pipediag.session.edits import Edit, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

PART = 10
"""The buffer becomes a tenth. Own choice: the fill is then next to nothing of what it was."""

LEAST_BATCHES = 8
"""That it still holds. Own choice: fewer would mix little more than the examples of a batch."""

ENOUGH_MIXED = "if the model learns as well from data that is mixed less"


def held_elements(session: Session, shuffle: Operation) -> int | None:
    """What the buffer holds once it is full: no more than there is; None where that is not known.

    An endless repeat above it brings more than there is.
    """
    buffer = shuffle.buffer_size or shuffle.parameters.get("buffer_size")
    if not isinstance(buffer, int) or buffer <= 0:
        return None
    above = upstream(session, shuffle)
    count = above[0].cardinality if above else None
    return min(buffer, count) if count is not None and count > 0 else buffer


def smaller_size(session: Session, shuffle: Operation) -> int | None:
    """A tenth, but some batches and enough to mix the data; None where that is hardly less."""
    held = held_elements(session, shuffle)
    behind = following_batch(session, shuffle)
    batch = behind.parameters.get("batch_size") if behind is not None else None
    if held is None or not isinstance(batch, int):
        return None
    above = upstream(session, shuffle)
    count = above[0].cardinality or 0 if above else 0
    enough = math.ceil(count * COVERAGE.value / 100.0)
    size = max(held // PART, LEAST_BATCHES * batch, enough)
    return size if size <= held // 2 else None


def smaller_buffer(session: Session, shuffle: Operation, rule: str) -> Edit | None:
    """To be tried in whole epochs, as steps alone don't show a fill."""
    size = smaller_size(session, shuffle)
    if size is None:
        return None
    return Edit(
        id=f"{rule}:buffer:{shuffle.id}",
        label=f"a buffer of {size} for the {place_name(shuffle)}",
        changes=(SetParameters(shuffle.id, {"buffer_size": size}),),
        check="shape",
        caveat="It counts time; how well the model learns from data that is mixed less is not "
        "measured.",
        whole_epoch=True,
    )
