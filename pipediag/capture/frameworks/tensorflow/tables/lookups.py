"""Gathers of a variable's rows in a step, and their ids, computed for a batch.

Only operations are run again that give the same for the same input and change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.step_graph import (
    At,
    Frame,
    Key,
    StepGraph,
    arguments_of,
    in_gradients,
)
from pipediag.capture.runtime import UnreadableStepError
from pipediag.tensorflow_names import LOOKUP

GATHERS_ROWS = "ResourceGather"
"""Operation that reads rows of a variable, and no others."""

_SAME_VALUES = ("Identity", "StopGradient", "PreventGradient", "CheckNumerics", "Snapshot")
_SAME_IDS = (*_SAME_VALUES, "Reshape", "ExpandDims", "Squeeze")
"""Operations that leave each id as it is, and in its place."""
_ONE_TO_ONE = (*_SAME_IDS, "Cast")
_COMPARES = "NotEqual"
"""The comparison with 0 in the mask of Keras's Embedding, and in masks that people write."""

_HANDS_OUT = "IteratorGetNext"
_OTHER_ATTRIBUTES = ("func", "shape", "tensor")
"""Types of attributes that operations on ids have no need of."""
_NO_MATCH = "A batch has another structure than the step was traced for."

Given = dict[Key, Any]
"""Values of tensors of a step."""


class NotFromABatchError(Exception):
    """The reason why ids can't be computed from a batch, as the end of a sentence."""


@dataclass(frozen=True)
class Lookup:
    """One gather of rows."""

    frame: Frame
    handle: Any
    """Handle of the variable, outside of the graph."""
    ids: At
    """The ids as the script has them: before Keras adds the rows to negative ones, and before they
    are made unique."""
    read: At | None
    """The value of the whole variable that it gathers from; None if it reads the rows alone."""


def lookups_in(step: StepGraph) -> list[Lookup]:
    """Return the lookups of the forward pass, each once: optimizers gather by the same ids."""
    found: list[Lookup] = []
    known: set[tuple[int, Key]] = set()
    for lookup in _gathers(step):
        table, ids = id(lookup.handle), lookup.ids
        if (table, ids.key) in known:
            continue
        if ids.op.type == "ConcatV2" and all(
            (table, _ids_behind(step, part).key) in known for part in ids.inputs()[:-1]
        ):
            continue  # ids of several lookups that an optimizer takes together
        known.add((table, ids.key))
        found.append(lookup)
    return found


def gathers_rows(step: StepGraph, frame: Frame, op: Any) -> bool:
    """Return True for a gather from a variable, or along a tensor's first dimension."""
    if op.type == "GatherV2":
        return bool(_constant(step, At(frame, op.inputs[2])) == 0)
    return op.type in (GATHERS_ROWS, "Gather")


def masks_zero(step: StepGraph, lookups: Sequence[Lookup]) -> bool:
    """Return True if the step compares the ids of one of these lookups with 0, as a mask does."""
    looked_up = {step.behind(one.ids, _ONE_TO_ONE).key for one in lookups}
    return any(
        step.behind(At(frame, op.inputs[0]), _ONE_TO_ONE).key in looked_up
        and _constant(step, At(frame, op.inputs[1])) == 0
        for frame, op in step.operations
        if op.type == _COMPARES and not in_gradients(op)
    )


def cast_of(step: StepGraph, ids: At) -> str | None:
    """Return the narrowest float type that ids pass, one for one, on their way from the batch."""
    floats: list[Any] = []
    at = step.source(ids)
    while not (floats and at.tensor.dtype.is_integer):
        if at.tensor.dtype.is_floating:
            floats.append(at.tensor.dtype)
        if at.op.type not in _ONE_TO_ONE:
            if not is_source(step, at):
                return None
            break
        at = step.source(at.inputs()[0])
    digits = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
    return min((one.name for one in floats), key=lambda name: digits.get(name, 64), default=None)


def _gathers(step: StepGraph) -> Iterator[Lookup]:
    for frame, op in step.operations:
        if in_gradients(op) or not gathers_rows(step, frame, op):
            continue
        of, ids = At(frame, op.inputs[0]), At(frame, op.inputs[1])
        read = None if op.type == GATHERS_ROWS else step.behind(of, (*_SAME_VALUES, "Cast"))
        if read is not None and read.op.type != "ReadVariableOp":
            continue  # of a tensor that was computed
        handle = step.captured(of if read is None else read.inputs()[0])
        if handle is not None:
            yield Lookup(frame, handle, _ids_behind(step, ids), read)


def _ids_behind(step: StepGraph, at: At) -> At:
    while True:
        at = step.source(at)
        kind, tensors = at.op.type, (at.tensor, *at.op.inputs)
        made_unique = kind in ("Unique", "UniqueV2") and at.tensor.value_index == 0
        between_integers = kind == "Cast" and all(one.dtype.is_integer for one in tensors)
        before = _before_turning(step, at)
        if before is not None:
            at = before
        elif kind in _SAME_IDS or made_unique or between_integers:
            at = at.inputs()[0]
        else:
            return at


def _before_turning(step: StepGraph, at: At) -> At | None:
    """Return the ids in `where(ids < 0, ids + rows, ids)`, by which Keras 3 looks rows up."""
    if at.op.type not in ("SelectV2", "Select"):
        return None
    negative, turned, ids = (step.source(one) for one in at.inputs())
    if negative.op.type != "Less" or turned.op.type not in ("AddV2", "Add"):
        return None
    compared, added = (step.source(one.inputs()[0]) for one in (negative, turned))
    return ids if compared.key == added.key == ids.key else None


def _constant(step: StepGraph, at: At) -> Any:
    """Return the value of a single number that is known in the graph; None for all else."""
    from tensorflow.python.framework import tensor_util

    value = tensor_util.constant_value(step.source(at).tensor)
    return value.item() if value is not None and value.size == 1 else None


def draws_one_batch(step: StepGraph) -> bool:
    """Return True if a call draws one batch from one iterator, or is given its batch."""
    draws = [(frame, op) for frame, op in step.operations if op.type.startswith(_HANDS_OUT)]
    return not draws or (
        len(draws) == 1 and draws[0][1].type == _HANDS_OUT and draws[0][0].branch is None
    )


def given_by_batch(step: StepGraph, parts: Sequence[Any]) -> Given:
    """Return the values of the tensors by which a step draws a batch of these parts itself.

    Raises:
        UnreadableStepError: the step was traced for another kind of batch.
    """
    given: Given = {}
    for frame, op in step.operations:
        if op.type == _HANDS_OUT:
            if [one.dtype for one in op.outputs] != [one.dtype for one in parts]:
                raise UnreadableStepError(_NO_MATCH)
            given = {
                At(frame, tensor).key: part for tensor, part in zip(op.outputs, parts, strict=True)
            }
    return given


def given_by_call(step: StepGraph, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
    """Return the values of the arguments of a call of the step.

    Raises:
        UnreadableStepError: the step was traced for other arguments.
    """
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.util import nest

    flat = nest.flatten((args, kwargs), expand_composites=True)
    parts = [one for one in flat if hasattr(one, "dtype") and hasattr(one, "shape")]
    inputs = arguments_of(step.root.graph)
    if len(parts) != len(inputs) or any(
        tensor.dtype != dtypes.as_dtype(part.dtype)
        or not tensor.shape.is_compatible_with(part.shape)
        for tensor, part in zip(inputs, parts, strict=True)
    ):
        raise UnreadableStepError(_NO_MATCH)
    with ops.device("/CPU:0"):  # where ids are computed
        return {
            At(step.root, tensor).key: ops.convert_to_tensor(part)
            for tensor, part in zip(inputs, parts, strict=True)
        }


def is_source(step: StepGraph, at: At) -> bool:
    """Return True for a part of the batch, or an argument of the step."""
    return at.op.type == _HANDS_OUT or (at.op.type == "Placeholder" and step.captured(at) is None)


def sources_of(step: StepGraph, lookup: Lookup) -> list[At]:
    """Return the parts of the batch, or arguments of the step, that its ids are computed from.

    Raises:
        NotFromABatchError: they do not come from the batch alone, or are looked up in a loop.
    """
    if lookup.frame.branch is not None:
        raise NotFromABatchError(f"they are looked up within `{lookup.frame.branch.call.type}`")

    def goes_on(at: At) -> bool:
        if is_source(step, at) or step.captured(at) is not None:
            return False
        if not _can_be_run_again(at.op):
            raise NotFromABatchError(f"they come through `{at.op.type}`, which can't be run again")
        return True

    return [at for at in step.upwards([lookup.ids], goes_on) if is_source(step, at)]


def _can_be_run_again(op: Any) -> bool:
    """Return True if the operation gives the same for the same input, and changes nothing."""
    from tensorflow.python.framework import op_def_registry

    if op.type == "Const":
        return True
    definition = op_def_registry.get(op.type)
    if definition is None or op.type == "Placeholder":  # given to a function that branches or loops
        return False
    special = any(kind in one.type for one in definition.attr for kind in _OTHER_ATTRIBUTES)
    return not special and (op.type in LOOKUP or not definition.is_stateful)


def compute(step: StepGraph, wanted: At, given: Given) -> Any:
    """Return the value of a tensor for the batch whose parts are given."""
    from tensorflow.python.framework import ops

    known = dict(given)

    def value_of(at: At) -> Any:
        at = step.source(at)
        if at.key not in known:
            captured = step.captured(at)
            if captured is not None:
                return captured
            values = _run(at.op, [value_of(one) for one in at.inputs()])
            for tensor, value in zip(at.op.outputs, values, strict=True):
                known[At(at.frame, tensor).key] = value
        return known[at.key]

    with ops.device("/CPU:0"):
        return value_of(wanted)


def _run(op: Any, inputs: list[Any]) -> Any:
    from tensorflow.python.eager import context, execute
    from tensorflow.python.framework import constant_op, tensor_util

    if op.type == "Const":
        return [constant_op.constant(tensor_util.MakeNdarray(op.get_attr("value")))]
    attributes = [part for one in op.op_def.attr for part in (one.name, _plain(op, one.name))]
    return execute.execute(
        op.type.encode(), len(op.outputs), inputs, tuple(attributes), context.context()
    )


def _plain(op: Any, name: str) -> Any:
    """Return an attribute in the form that the runtime takes: types as numbers."""
    value = op.get_attr(name)
    if isinstance(value, list):
        return [getattr(one, "as_datatype_enum", one) for one in value]
    return getattr(value, "as_datatype_enum", value)
