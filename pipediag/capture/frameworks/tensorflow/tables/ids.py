"""The ids that a step looks up, computed from a batch as the step computes them.

Only operations are run again that give the same for the same input and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.draws import (
    HANDED_OUT,
    HANDS_OUT,
    hands_out_to_all,
)
from pipediag.capture.frameworks.tensorflow.tables.lookups import (
    Lookup,
    one_to_one,
    same_ids_before,
)
from pipediag.capture.frameworks.tensorflow.tables.unfolded import At, Unfolded
from pipediag.tensorflow_names import LOOKUP

_OTHER_ATTRIBUTES = ("func", "shape", "tensor")
"""Types of attributes that operations on ids have no need of."""


class NotFromABatchError(Exception):
    """Why ids can't be computed from a batch, as the end of a sentence."""


@dataclass(frozen=True)
class Cast:
    """Ids that come as integers, or as floats, and pass a float type on their way."""

    through: str
    """The narrowest float type."""
    before: At | None
    """The integers; None where they come as floats from the pipeline."""


def handed_out_there(step: Unfolded, lookup: Lookup) -> bool:
    """Whether the loop or branch that a lookup is in is given a batch of its own."""
    try:
        sources = list(sources_of(step, lookup.ids))
    except NotFromABatchError:
        return False
    return bool(sources) and all(
        one.frame.branch is lookup.branch
        and (one.op.type == HANDED_OUT or one.frame.is_element(one.op))
        for one in sources
    )


def sources_of(step: Unfolded, ids: At) -> Iterator[At]:
    """The parts of the batch, or the arguments of the step, that the ids are computed from.

    Raises:
        NotFromABatchError: they are computed from more than these.
    """
    return _upwards(step, ids, lambda at: is_source(step, at))


def outside_functions(step: Unfolded, ids: At) -> Iterator[At]:
    """The tensors of the step's own level, outside of functions that it calls, that the ids are, or
    are computed from there.

    Raises:
        NotFromABatchError: they are computed from more than these.
    """
    return _upwards(step, ids, lambda at: at.frame is step.root and not _captured(step, at))


def _upwards(step: Unfolded, ids: At, sought: Callable[[At], bool]) -> Iterator[At]:
    """The nearest tensors of a kind that others are computed from, each once."""
    seen: set[tuple[int, str, int]] = set()
    waiting = [step.source(ids)]
    while waiting:
        at = waiting.pop()
        if at.key in seen:
            continue
        seen.add(at.key)
        if sought(at):
            yield at
        elif not _captured(step, at):
            _check(at.op)
            waiting.extend(step.source(one) for one in at.inputs())


def compute(step: Unfolded, wanted: At, given: dict[tuple[int, str, int], Any]) -> Any:
    """The value of a tensor for one batch, whose parts are `given` by the keys of their sources."""
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


def cast_of(step: Unfolded, ids: At) -> Cast | None:
    """Through which float type they pass, one for one, from where the batch has them; or None."""
    floats: list[Any] = []
    at = step.source(ids)
    while True:
        if at.tensor.dtype.is_floating:
            floats.append(at.tensor.dtype)
        elif floats and at.tensor.dtype.is_integer:
            return Cast(_narrowest(floats), at)
        before = one_to_one(step, at)
        if before is None:
            return Cast(_narrowest(floats), None) if floats and is_source(step, at) else None
        at = step.source(before)


def part_of_batch(step: Unfolded, ids: At) -> int | None:
    """Which of the tensors that the step is handed has these ids as they are; None where they come
    in another way."""
    before: At | None = ids
    while before is not None:
        at = step.source(before)
        if at.op.type in (HANDS_OUT, HANDED_OUT):
            return int(at.tensor.value_index)
        before = same_ids_before(step, at)
    return None


def is_source(step: Unfolded, at: At) -> bool:
    """Whether it is a part of the batch, or an argument of the step."""
    return (
        at.op.type in (HANDS_OUT, HANDED_OUT)
        or (at.op.type == "Placeholder" and not _captured(step, at))
        or hands_out_to_all(step, at.frame, at.op)
    )


def _captured(step: Unfolded, at: At) -> bool:
    return step.captured(at) is not None


def _narrowest(floats: list[Any]) -> str:
    digits = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
    return str(min((one.name for one in floats), key=lambda name: digits.get(name, 64)))


def _check(op: Any) -> None:
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(op.type)
    if op.type == "Const":
        return
    if op.type == "Placeholder":
        raise NotFromABatchError("they are given to a function that branches or loops")
    if definition is None or _cannot_be_run_again(definition):
        raise NotFromABatchError(f"their way through `{op.type}` can't be followed")
    if definition.is_stateful and op.type not in LOOKUP:
        raise NotFromABatchError(f"they are computed by `{op.type}`, which has a state")


def _cannot_be_run_again(definition: Any) -> bool:
    return any(kind in one.type for one in definition.attr for kind in _OTHER_ATTRIBUTES)


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
    """An attribute as the runtime takes it: of types, their numbers."""
    value = op.get_attr(name)
    if isinstance(value, list):
        return [getattr(one, "as_datatype_enum", one) for one in value]
    return getattr(value, "as_datatype_enum", value)
