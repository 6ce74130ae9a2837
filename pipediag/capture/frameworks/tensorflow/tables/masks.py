"""Whether a step masks id 0: by the ids that it looks up, compared with 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.lookups import (
    Lookup,
    in_gradients,
    one_to_one,
)
from pipediag.capture.frameworks.tensorflow.tables.unfolded import At, Unfolded

_COMPARES = "NotEqual"
"""What Keras' Embedding masks by, and what people write who mask by themselves."""


def masks_zero(step: Unfolded, lookups: Sequence[Lookup]) -> bool:
    """Whether the step compares the ids of one of these lookups with 0, as a mask does."""
    looked_up = {_origin(step, one.ids).key for one in lookups}
    compared = ((frame, op) for frame, op in step.operations if op.type == _COMPARES)
    return any(
        _origin(step, At(frame, op.inputs[0])).key in looked_up
        and _is_zero(step.source(At(frame, op.inputs[1])).tensor)
        for frame, op in compared
        if not in_gradients(op)
    )


def _origin(step: Unfolded, at: At) -> At:
    """Where ids come from, one for one, whatever types they pass on their way."""
    at = step.source(at)
    while (before := one_to_one(step, at)) is not None:
        at = step.source(before)
    return at


def _is_zero(tensor: Any) -> bool:
    from tensorflow.python.framework import tensor_util

    value = tensor_util.constant_value(tensor)
    return value is not None and value.size == 1 and not value.any()
