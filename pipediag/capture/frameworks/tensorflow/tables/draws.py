"""What a step draws from the iterator that it is called with."""

from __future__ import annotations

from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.unfolded import At, Frame, Unfolded

HANDS_OUT = "IteratorGetNext"
MAY_HAND_OUT = "IteratorGetNextAsOptional"
"""A batch, or that there is none; or of a replica, which an incomplete batch may have nothing
for."""
HANDED_OUT = "OptionalGetValue"
"""A batch that was drawn before, maybe in the turn of a loop before this one: Keras takes several
steps in one call so."""


def draws_as_counted(
    step: Unfolded, *, batches_per_call: int, replicas: int, distributed: bool
) -> bool:
    """Whether a call draws what is counted as a call's: one batch from one iterator, of which each
    replica gets a part, or as many as Keras takes steps.

    Of a function that draws several by itself nobody knows how many it goes on to.
    """
    draws = [(frame, op) for frame, op in step.operations if op.type in (HANDS_OUT, MAY_HAND_OUT)]
    if not draws:
        return True
    outside = [one for one in draws if one[0].branch is None]
    inside = [one for one in draws if one[0].branch is not None]
    iterators = {_iterator(step, *one) for one in draws}
    begun = {_iterator(step, *one) for one in outside}
    if not len(outside) == len(begun) == len(iterators) == max(1, replicas):
        return False
    if batches_per_call > 1:
        return all(op.type == MAY_HAND_OUT for _, op in draws)
    # A strategy draws once more where nothing is left, to find the end of the data.
    return all(distributed and op.type == HANDS_OUT and f.within == "If" for f, op in inside)


def hands_out_to_all(step: Unfolded, frame: Frame, op: Any) -> bool:
    """Whether it gives the parts of all replicas, of which some may be empty.

    A strategy asks first whether there is something for any of them, or the data are at their end.
    """
    if op.type != "If" or frame.branch is not None:
        return False
    given = (step.source(At(frame, tensor)).op.type for tensor in op.inputs)
    return any(kind == MAY_HAND_OUT for kind in given)


def _iterator(step: Unfolded, frame: Frame, op: Any) -> tuple[int, str, int]:
    return step.source(At(frame, op.inputs[0])).key
