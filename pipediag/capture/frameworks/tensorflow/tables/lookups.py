"""Where a step gathers rows of a variable, and the ids that it does that by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.unfolded import At, Frame, Unfolded

GATHERS_ROWS = "ResourceGather"
"""It reads rows of a variable, and no others."""
_FROM_A_TENSOR = ("GatherV2", "Gather")
_IN_GRADIENTS = ("gradient_tape/", "gradients/")
"""Scopes that TensorFlow computes gradients in."""

_SAME_VALUES = ("Identity", "StopGradient", "PreventGradient", "CheckNumerics", "Snapshot")
_SAME_IDS = (*_SAME_VALUES, "Reshape", "ExpandDims", "Squeeze")
"""What leaves each id as it is, and in its place."""
_NO_OTHER_IDS = (*_SAME_IDS, "EnsureShape", "Slice", "StridedSlice", "Transpose")
"""What may leave some out, or move them, but makes none."""


@dataclass(frozen=True)
class Lookup:
    """One gather."""

    handle: Any
    """That of the variable, outside of the graph."""
    ids: At
    """Where they are as the script has them: before Keras turns negative ones around, or before
    they are made unique."""
    read: At | None
    """The whole variable's value that it gathers from; None where it does so through the handle."""
    branch: Frame | None
    """The body of the loop or branch of the graph that it is in."""
    compiled: bool
    """Whether XLA compiles it."""


def lookups_in(step: Unfolded) -> list[Lookup]:
    """Those of the forward pass, each once: an optimizer gathers by the same ids again."""
    found: list[Lookup] = []
    known: set[tuple[int, tuple[int, str, int]]] = set()
    for lookup in _gathers(step):
        table, ids = id(lookup.handle), lookup.ids
        if (table, ids.key) in known:
            continue
        if ids.op.type == "ConcatV2" and all((table, p.key) in known for p in _parts(step, ids)):
            continue
        known.add((table, ids.key))
        found.append(lookup)
    return found


def in_gradients(op: Any) -> bool:
    """Whether it computes a gradient."""
    return any(scope in op.name for scope in _IN_GRADIENTS)


def gathers_rows(step: Unfolded, frame: Frame, op: Any) -> bool:
    """Whether it gathers rows of a variable, or of a tensor along its first dimension."""
    return op.type == GATHERS_ROWS or (op.type in _FROM_A_TENSOR and _of_rows(step, op, frame))


def one_to_one(step: Unfolded, at: At) -> At | None:
    """What a tensor was made of by an operation that keeps each id in its place, or None."""
    at = step.source(at)
    return At(at.frame, at.op.inputs[0]) if at.op.type in (*_SAME_IDS, "Cast") else None


def same_ids_before(step: Unfolded, at: At) -> At | None:
    """What has the same integers, or more of them, where an operation makes no others."""
    at = step.source(at)
    if at.op.type in _NO_OTHER_IDS or _between_integers(at):
        return At(at.frame, at.op.inputs[0])
    # The values of ragged ones stand behind their splits.
    if at.op.type == "RaggedTensorToVariant":
        return At(at.frame, at.op.inputs[-1])
    if at.op.type == "RaggedTensorFromVariant" and at.tensor is at.op.outputs[-1]:
        return At(at.frame, at.op.inputs[0])
    return None


def _gathers(step: Unfolded) -> Iterator[Lookup]:
    for frame, op in step.operations:
        if in_gradients(op):
            continue
        if op.type == GATHERS_ROWS:
            handle, read = step.captured(At(frame, op.inputs[0])), None
        elif op.type in _FROM_A_TENSOR and _of_rows(step, op, frame):
            read = _read_behind(step, At(frame, op.inputs[0]))
            handle = None if read is None else step.captured(read.inputs()[0])
        else:
            continue
        if handle is not None:
            ids = _ids_behind(step, At(frame, op.inputs[1]))
            yield Lookup(handle, ids, read, frame.branch, frame.compiled)


def _of_rows(step: Unfolded, op: Any, frame: Frame) -> bool:
    """Whether it gathers along the first dimension."""
    if op.type == "Gather":
        return True
    from tensorflow.python.framework import tensor_util

    axis = tensor_util.constant_value(step.source(At(frame, op.inputs[2])).tensor)
    return axis is not None and int(axis) == 0


def _read_behind(step: Unfolded, at: At) -> At | None:
    """The value of a whole variable, where it was read; None for a tensor that was computed."""
    at = step.source(at)
    while at.op.type in (*_SAME_VALUES, "Cast"):
        at = step.source(At(at.frame, at.op.inputs[0]))
    return at if at.op.type == "ReadVariableOp" else None


def _ids_behind(step: Unfolded, at: At) -> At:
    while True:
        at = step.source(at)
        before = _before_turning(step, at)
        if before is not None:
            at = before
        elif at.op.type in _SAME_IDS or _made_unique(at) or _between_integers(at):
            at = At(at.frame, at.op.inputs[0])
        else:
            return at


def _made_unique(at: At) -> bool:
    return bool(at.op.type in ("Unique", "UniqueV2") and at.tensor.value_index == 0)


def _between_integers(at: At) -> bool:
    types = (at.tensor.dtype, *(one.dtype for one in at.op.inputs))
    return at.op.type == "Cast" and all(one.is_integer for one in types)


def _before_turning(step: Unfolded, at: At) -> At | None:
    """The ids in `where(ids < 0, ids + rows, ids)`, which Keras 3 looks up by."""
    if at.op.type not in ("SelectV2", "Select"):
        return None
    negative, turned, ids = (step.source(one) for one in at.inputs())
    if negative.op.type != "Less" or turned.op.type not in ("AddV2", "Add"):
        return None
    compared, added = (step.source(one.inputs()[0]) for one in (negative, turned))
    return ids if compared.key == added.key == ids.key else None


def _parts(step: Unfolded, ids: At) -> list[At]:
    """Ids of several lookups that an optimizer takes together, each of its own."""
    return [_ids_behind(step, part) for part in ids.inputs()[:-1]]
