"""What replicas exchange in a step: gradients that are added up over several devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.unfolded import At, Frame, Unfolded

_COLLECTIVE = re.compile(r"(CollectiveReduce|Nccl(All)?Reduce)\w*")
_ADDS_UP = "AddN"
"""Where a strategy is told to add up on one device."""
_SAME = ("Cast", "Identity", "Reshape")
"""What a gradient passes before it is packed with others into one, and afterwards."""
_UNPACKS = ("Split", "SplitV")
_REPLICA = re.compile(r"(?:^|/)replica_(\d+)/")


def exchanged(step: Unfolded) -> Iterator[tuple[At, At]]:
    """Each gradient that is added up over replicas, as it was before and as it is afterwards."""
    for frame, op in step.operations:
        inputs = [At(frame, one) for one in op.inputs]
        if _COLLECTIVE.fullmatch(op.type):
            # Gradients of many variables are exchanged as one; their order stays.
            yield from zip(_packed(step, inputs[0]), _unpacked(frame, op), strict=False)
        elif op.type == _ADDS_UP and len({_replica(step.source(one).op) for one in inputs}) > 1:
            for one in inputs:
                yield one, At(frame, op.outputs[0])


def _packed(step: Unfolded, at: At) -> list[At]:
    at = _before(step, at)
    if at.op.type != "ConcatV2":
        return [at]
    return [_before(step, one) for one in at.inputs()[:-1]]


def _before(step: Unfolded, at: At) -> At:
    at = step.source(at)
    while at.op.type in _SAME:
        at = step.source(at.inputs()[0])
    return at


def _unpacked(frame: Frame, op: Any) -> list[At]:
    tensor = _afterwards(op.outputs[0])
    parts = [one for one in tensor.consumers() if one.type in _UNPACKS]
    made = parts[0].outputs if parts else [tensor]
    return [At(frame, _afterwards(one)) for one in made]


def _afterwards(tensor: Any) -> Any:
    while True:
        following = [one for one in tensor.consumers() if one.type in _SAME]
        if not following:
            return tensor
        tensor = following[0].outputs[0]


def _replica(op: Any) -> str:
    """The number of the replica whose operation it is; TensorFlow names no first one."""
    found = _REPLICA.search(op.name)
    return found[1] if found else "0"
