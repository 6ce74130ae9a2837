"""What stands in the graph of a step for the batch that it is given, or draws itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.draws import (
    HANDED_OUT,
    HANDS_OUT,
    hands_out_to_all,
)
from pipediag.capture.frameworks.tensorflow.tables.table import Given
from pipediag.capture.frameworks.tensorflow.tables.unfolded import At, Frame, Unfolded
from pipediag.capture.frameworks.tensorflow.traced_shapes import called_with
from pipediag.capture.runtime import KeptBatch, UnreadableStepError

_ASSIGNS, _NAMED = "AssignVariableOp", "VarHandleOp"
_NO_MATCH = "A batch has another structure than the step was traced for."


def drawn(step: Unfolded, parts: list[Any], of_replicas: list[list[Any]]) -> Given:
    """What stands for the parts of a batch that the step draws itself: all of them together, or
    one replica after the other.

    Raises:
        UnreadableStepError: the batch is none that the step was traced for.
    """
    given: Given = {}
    count = 0
    for frame, op in step.operations:
        if op.type == HANDED_OUT or hands_out_to_all(step, frame, op):
            # A strategy has some for the part of one replica, or for what is there at all.
            if _are_of(op.outputs, parts):
                given.update(_standing_for(frame, op, parts))
        elif op.type == HANDS_OUT and not _finds_the_end(frame, of_replicas):
            of_replica = of_replicas[count % len(of_replicas)]
            if not _are_of(op.outputs, of_replica):
                raise UnreadableStepError(_NO_MATCH)
            given.update(_standing_for(frame, op, of_replica))
            count += 1
    return given


def handed_out(batch: Any) -> list[Any]:
    """The tensors of a batch as an iterator hands them out: of a ragged or a sparse one, a single
    tensor that holds all of it."""
    from tensorflow.python.data.util import structure

    return list(structure.to_tensor_list(structure.type_spec_from_value(batch), batch))


def kept(step: Unfolded, batch: KeptBatch) -> Given:
    """What stands for the parts of a batch that the step keeps itself; nothing where it keeps none
    there.

    Raises:
        UnreadableStepError: the batch is none that the step was traced for.
    """
    given: Given = {}
    for frame, op in step.operations:
        if op.type != _ASSIGNS or _name(step.source(At(frame, op.inputs[0]))) != batch.place:
            continue
        made = step.source(At(frame, op.inputs[1]))
        _, *parts = (step.source(one) for one in made.inputs())
        if not _are_of([one.tensor for one in parts], batch.parts):
            raise UnreadableStepError(_NO_MATCH)
        given.update({at.key: part for at, part in zip(parts, batch.parts, strict=True)})
    return given


def called(step: Unfolded, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
    """What stands for the arguments of a call of the step.

    Raises:
        UnreadableStepError: they are none that the step was traced for.
    """
    from tensorflow.python.util import nest

    flat = nest.flatten((args, kwargs), expand_composites=True)
    parts = [one for one in flat if hasattr(one, "dtype") and hasattr(one, "shape")]
    inputs = called_with(step.root.graph)
    if len(parts) != len(inputs) or any(
        tensor.dtype != _dtype(part) or not tensor.shape.is_compatible_with(part.shape)
        for tensor, part in zip(inputs, parts, strict=True)
    ):
        raise UnreadableStepError(_NO_MATCH)
    return {
        At(step.root, tensor).key: _as_tensor(part)
        for tensor, part in zip(inputs, parts, strict=True)
    }


def _name(handle: At) -> str | None:
    """Of the variable, where the step knows it by one."""
    if handle.op.type != _NAMED:
        return None
    return str(handle.op.get_attr("shared_name").decode())


def _finds_the_end(frame: Frame, of_replicas: list[list[Any]]) -> bool:
    """Whether a strategy draws there where it knows that nothing is left."""
    return len(of_replicas) > 1 and frame.within is not None


def _are_of(tensors: Sequence[Any], parts: list[Any]) -> bool:
    """Whether these could be parts of the batch."""
    return [one.dtype for one in tensors] == [one.dtype for one in parts]


def _standing_for(frame: Frame, op: Any, parts: list[Any]) -> Given:
    pairs = zip(op.outputs, parts, strict=True)
    return {At(frame, tensor).key: part for tensor, part in pairs}


def _as_tensor(value: Any) -> Any:
    """Of an array, as the call makes it of one, but where its ids are computed."""
    from tensorflow.python.framework import ops, tensor

    if isinstance(value, tensor.Tensor):
        return value
    with ops.device("/CPU:0"):
        return ops.convert_to_tensor(value)


def _dtype(value: Any) -> Any:
    from tensorflow.python.framework import dtypes

    return dtypes.as_dtype(value.dtype)
