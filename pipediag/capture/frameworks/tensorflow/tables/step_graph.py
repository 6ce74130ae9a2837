"""The graph of a traced step, with the graphs of the functions that it calls unfolded into it, its
gathers of a variable's rows, and their ids, computed for a batch.

Only operations are run again that give the same for the same input and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipediag.capture.runtime import UnreadableStepError
from pipediag.tensorflow_names import LOOKUP

_MOST_OPERATIONS = 200_000
"""Own choice: reading more of them would stop the script for seconds."""

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")
_FUNCTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_CALLS, ("f",)),
    **dict.fromkeys(("If", "StatelessIf"), ("then_branch", "else_branch")),
    **dict.fromkeys(("Case", "StatelessCase"), ("branches",)),
    **dict.fromkeys(("While", "StatelessWhile"), ("body",)),
}
"""Operations that call functions, with the attributes that name these."""
_COMPILED = "_XlaMustCompile"
"""The attribute by which TensorFlow marks what XLA is to compile."""
_IN_GRADIENTS = ("gradient_tape/", "gradients/")
"""Scopes in which TensorFlow computes gradients."""

Key = tuple[int, str, int]
"""Identity of a tensor in a step: the number of its frame, its operation, its place there."""


@dataclass(eq=False)
class Frame:
    """One call of one function."""

    index: int
    graph: Any
    caller: Frame | None = None
    call: Any = None
    """The operation that calls it."""
    given: Sequence[Any] = ()
    """Expression that the call passes for each input."""
    positions: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        inputs = enumerate(self.graph.inputs)
        self.positions = {tensor.op.name: place for place, tensor in inputs}

    def given_for(self, op: Any) -> Any:
        """Return what the call passes for an input; None for all that no call passes."""
        place = self.positions.get(op.name) if op.type == "Placeholder" else None
        return self.given[place] if place is not None and place < len(self.given) else None

    @property
    def branch(self) -> Frame | None:
        """Return the body of the loop or branch that it is in; None where each step runs it
        once."""
        if self.caller is None:
            return None
        return self.caller.branch if self.call.type in _CALLS else self


class At(NamedTuple):
    """A tensor in one call of a function."""

    frame: Frame
    tensor: Any

    @property
    def key(self) -> Key:
        return self.frame.index, self.tensor.op.name, self.tensor.value_index

    @property
    def op(self) -> Any:
        return self.tensor.op

    def inputs(self) -> list[At]:
        return [At(self.frame, tensor) for tensor in self.tensor.op.inputs]


class StepGraph:
    """Every operation that a call of a concrete function may run, each with the call it is in.

    Raises:
        UnreadableStepError: a called function can't be found, or the graph is too large.
    """

    def __init__(self, concrete: Any) -> None:
        graph = concrete.graph
        self.root = Frame(0, graph)
        self.compiled = bool(concrete.function_def.attr[_COMPILED].b)
        """True if XLA compiles it, or a function in it."""
        self.frames = [self.root]
        self.operations: list[tuple[Frame, Any]] = []
        self._called: dict[tuple[int, str], list[Frame]] = {}
        self._captured = {internal.op.name: external for external, internal in graph.captures}
        self._unfold(self.root)

    def source(self, at: At) -> At:
        """Return where a tensor is made, across the borders of functions."""
        while True:
            frame, op = at.frame, at.op
            given = frame.given_for(op)
            if given is not None and frame.caller is not None:
                at = At(frame.caller, given)
            elif op.type in _CALLS:
                (callee,) = self._called[frame.index, op.name]
                at = At(callee, callee.graph.outputs[at.tensor.value_index])
            else:
                return at

    def upwards(
        self, starts: Iterable[At], goes_on: Callable[[At], bool] = lambda _: True
    ) -> Iterator[At]:
        """Yield the tensors that these are computed from, themselves included and each once; what
        lies behind one, where it `goes_on`."""
        seen: set[Key] = set()
        waiting = [self.source(one) for one in starts]
        while waiting:
            at = waiting.pop()
            if at.key not in seen:
                seen.add(at.key)
                yield at
                if goes_on(at):
                    waiting.extend(self.source(one) for one in at.inputs())

    def behind(self, at: At, kinds: Container[str]) -> At:
        """Return what a tensor is made from, through operations of these kinds."""
        at = self.source(at)
        while at.op.type in kinds:
            at = self.source(at.inputs()[0])
        return at

    def captured(self, at: At) -> Any:
        """Return the captured handle or constant behind a tensor; None for all else."""
        made = self.source(at)
        return self._captured.get(made.op.name) if made.frame is self.root else None

    def handles(self) -> dict[int, Any]:
        """Return all captured handles by id: the graph need not list a variable whose handle is
        used by itself."""
        captured = self._captured.values()
        return {id(one): one for one in captured if one.dtype.name == "resource"}

    def _unfold(self, frame: Frame) -> None:
        for op in frame.graph.get_operations():
            self.operations.append((frame, op))
            if len(self.operations) > _MOST_OPERATIONS:
                raise UnreadableStepError(
                    f"The graph of the step has more than {_MOST_OPERATIONS} operations."
                )
            if op.type in _FUNCTIONS:
                self.compiled |= _COMPILED in op.node_def.attr and bool(op.get_attr(_COMPILED))
                values = [op.get_attr(attribute) for attribute in _FUNCTIONS[op.type]]
                functions = [f for one in values for f in (one if isinstance(one, list) else [one])]
                callees = [self._enter(frame, op, one.name) for one in functions]
                self._called[frame.index, op.name] = callees

    def _enter(self, frame: Frame, op: Any, name: str) -> Frame:
        graph = _graph_of(frame, name)
        given = op.inputs[1:] if op.type in _BRANCHES else op.inputs
        callee = Frame(len(self.frames), graph, frame, op, list(given))
        self.frames.append(callee)
        self._unfold(callee)
        return callee


def calls_functions(op: Any) -> bool:
    """Return True if another graph does the operation's work."""
    return op.type in _FUNCTIONS


def in_gradients(op: Any) -> bool:
    """Return True if the operation computes a gradient."""
    return any(scope in op.name for scope in _IN_GRADIENTS)


def arguments_of(graph: Any) -> list[Any]:
    """Return a graph's inputs without captures and without what replicas pass at each call."""
    captured = len(graph.captures) + len(getattr(graph, "deferred_external_captures", ()))
    return list(graph.inputs[: len(graph.inputs) - captured])


def of_all_devices(variable: Any) -> Any:
    """Return the variable of a strategy that this one is a copy of; otherwise the variable."""
    # Which of the two TensorFlow uses depends on its version.
    at_handle = getattr(variable.handle, "_distributed_container", None)
    container = at_handle or getattr(variable, "_distributed_container", None)
    return variable if container is None else container() or variable


def _graph_of(frame: Frame | None, name: str) -> Any:
    while frame is not None:
        function = frame.graph._get_function(name)
        if function is not None:
            return function.graph
        frame = frame.caller
    raise UnreadableStepError(f"The step calls `{name}`, whose graph TensorFlow does not show.")


# Lookups of ids.

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
