"""The embedding tables of a step that no function runs, read from the operations that it runs."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.listening import (
    MOST_OPERATIONS,
    EagerOperation,
    EagerTensor,
    Listening,
    Place,
    SomeTensors,
    WholeStep,
    text,
)
from pipediag.capture.frameworks.tensorflow.tables.lookups import (
    Given,
    Lookup,
    NotFromABatchError,
    cast_of,
    outside_functions,
    sources_of,
    sources_of_lookup,
)
from pipediag.capture.frameworks.tensorflow.tables.step_graph import (
    At,
    StepGraph,
    UnreadableGraphError,
)
from pipediag.capture.frameworks.tensorflow.tables.traced_step import Step, TableInStep
from pipediag.capture.runtime import UnreadableStepError
from pipediag.session.recorded_loops import RecordedSoftmax

_NO_VARIABLE = "No operation of TensorFlow that ran in the step has to do with a variable."
_TOO_MANY = f"The step runs more than {MOST_OPERATIONS} operations one by one."
_CALL = "StatefulPartitionedCall"
_IN_GRADIENTS = "gradient_tape/"
"""The scope that TensorFlow itself gives operations of gradients in a graph."""


class EagerSteps:
    """Reads the first step of a loop that ran what the one before it ran; later steps tell their
    ids."""

    def __init__(self) -> None:
        self._step: EagerTables | None = None
        self._heard: WholeStep | SomeTensors = WholeStep()
        self._before: list[str] | None = None
        """The operations of the step before."""
        self._listening: Listening | None = None

    def begin(self) -> None:
        """Listen to a step that begins on this thread."""
        self._heard = WholeStep() if self._step is None else self._step.next_heard()
        self._listening = Listening(self._heard.hear)
        self._listening.begin()

    def end(self) -> None:
        """Stop listening: the step is over, or what is left of it does not matter."""
        if self._listening is not None:
            self._listening.end()

    def can_be_read(self) -> bool:
        """Return True if the step that is over ran what the one before it ran, or can't be read
        anyway: other operations run between epochs."""
        heard = self._heard
        assert self._listening is not None
        if self._listening.lack is not None or isinstance(heard, SomeTensors) or heard.too_many:
            return True
        before, self._before = self._before, [one.type for one in heard.operations]
        return before == self._before

    def read(self) -> EagerTables:
        """Return what the step that is over tells.

        Raises:
            UnreadableStepError: nothing.
        """
        heard, self._heard = self._heard, WholeStep()
        assert self._listening is not None
        if self._listening.lack is not None:
            raise UnreadableStepError(self._listening.lack)
        assert isinstance(heard, WholeStep)
        if heard.too_many:
            raise UnreadableStepError(_TOO_MANY)
        self._step = EagerTables(heard.operations)
        return self._step

    def given(self) -> Given | None:
        """Return what the ids of the step that is over are computed from; None for a step that ran
        other operations."""
        heard = self._heard
        return heard.found if isinstance(heard, SomeTensors) and heard.complete else None


class EagerTables:
    """The tables of one step.

    Its operations have no names in a profile, so that none is known as a part of a table's cost.

    Raises:
        UnreadableStepError: its operations can't be read as a graph.
    """

    vocabulary_operations: Sequence[str] = ()
    constant_bytes = 0
    """Operations that are called one by one have no constants in a graph."""

    def __init__(self, operations: Sequence[EagerOperation]) -> None:
        graph = _EagerGraph(operations)
        if not graph.variables:
            raise UnreadableStepError(_NO_VARIABLE)
        try:
            step = Step(StepGraph(graph.graph), graph.variables, _EagerTable)
        except UnreadableGraphError as lack:
            raise UnreadableStepError(str(lack)) from lack
        self._operations = operations
        self._graph = graph  # TensorFlow's tensors do not keep it alive
        self.tables: Sequence[TableInStep] = step.tables
        softmaxes = {id(weight): one for weight, one in step.softmaxes}
        for table in self.tables:
            table.softmax = softmaxes.get(id(table.variable))
            # It depends on when Python lets a tensor go, which the graph does not tell.
            table.use.temporary_peak_bytes = None
        self.softmaxes: Sequence[RecordedSoftmax] = list(softmaxes.values())

    def next_heard(self) -> SomeTensors:
        """Return what keeps the ids of a step that follows."""
        places = {
            at.key: self._graph.place(at.tensor)
            for table in self.tables
            if table.ids_missing is None
            for at in table.needed.values()
        }
        return SomeTensors(self._operations, places)

    def draws_as_counted(self, batches_per_call: int) -> bool:
        """Return True for one batch: the step draws none, Python does."""
        return batches_per_call == 1

    def of_batch(self, batch: Any) -> Given:  # noqa: ARG002
        """Return nothing: operations tell the ids, and not the batch."""
        return {}

    def of_call(self, function: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> None:  # noqa: ARG002
        """Return nothing: no function runs the step."""
        return


class _EagerTable(TableInStep):
    """A table whose ids are those that were looked up, wherever they come from."""

    def _computed_from(self, ids: At) -> list[At]:
        found = outside_functions(self._step, ids)
        cast = cast_of(self._step, ids)
        if cast is not None and cast.before is not None:
            found += outside_functions(self._step, cast.before)
        return found

    def _made_of(self, lookup: Lookup) -> list[At]:
        """Return the ids as the batch has them, or else as the step makes them, drawn at random or
        in Python."""
        if lookup.branch is not None:
            return sources_of_lookup(self._step, lookup)
        try:
            found = sources_of(self._step, lookup.ids)
        except NotFromABatchError:
            found = []
        return found or outside_functions(self._step, lookup.ids)


class _EagerGraph:
    """A graph of operations in the order in which they ran; nothing is run, and no number drawn.

    Tensors that none of them has made are inputs, as a batch is; a few integers are constants.
    Iterators are inputs too: a graph lives until Python collects its garbage, and a process that
    was forked by then hangs or aborts where it frees one, as the threads of its pipeline are not
    there.
    """

    def __init__(self, operations: Sequence[EagerOperation]) -> None:
        from tensorflow.python.framework import func_graph

        self.graph: Any = func_graph.FuncGraph("eager_step")
        self._tensors: dict[int, Any] = {}
        self._places: dict[tuple[str, int], Place] = {}
        self.variables, functions, self._iterators = _of_process(operations)
        self.graph.variables = self.variables
        with self.graph.as_default():
            for number, operation in enumerate(operations):
                self._add(number, operation, functions.get(operation.type))

    def place(self, tensor: Any) -> Place:
        """Return where one of the graph's tensors can be taken when the operations run again."""
        return self._places[tensor.op.name, tensor.value_index]

    def _add(self, number: int, operation: EagerOperation, function: Any) -> None:
        inputs = [
            self._given(one, Place(number, made=False, index=index))
            for index, one in enumerate(operation.inputs)
        ]
        if function is None:
            kind, attributes = operation.type, _attributes(operation)
        else:
            self.graph._add_function_recursive(function)
            kind, attributes = _CALL, _of_call(operation, function)
        scope = _IN_GRADIENTS if operation.in_gradients else ""
        added = self.graph._create_op_internal(
            kind,
            inputs,
            [one.dtype for one in operation.outputs],
            name=f"{scope}{kind}",
            attrs=attributes,
            compute_device=False,
        )
        for index, (tensor, made) in enumerate(zip(added.outputs, operation.outputs, strict=True)):
            tensor.set_shape(made.shape)
            self._note(made, tensor, Place(number, made=True, index=index))

    def _given(self, tensor: EagerTensor, place: Place) -> Any:
        from tensorflow.python.framework import constant_op
        from tensorflow.python.ops import array_ops

        if tensor.id not in self._tensors:
            handle = None if tensor.handle is None else tensor.handle()
            if handle is not None and id(handle) not in self._iterators:
                made = self.graph.capture(handle)
            elif tensor.integers is not None:
                made = constant_op.constant(tensor.integers, tensor.dtype)
            else:
                made = array_ops.placeholder(tensor.dtype, tensor.shape)
            self._note(tensor, made, place)
        return self._tensors[tensor.id]

    def _note(self, tensor: EagerTensor, made: Any, place: Place) -> None:
        self._tensors[tensor.id] = made
        self._places[made.op.name, made.value_index] = place


def _attributes(operation: EagerOperation) -> Mapping[str, Any]:
    """Return them as a graph has them, without those that are left to TensorFlow's defaults: run by
    itself, an operation may be given None for one, as a dataset's prefetch is for its slack."""
    from tensorflow.python.framework import op_def_library, op_def_registry

    definition = op_def_registry.get(operation.type)
    kinds = {one.name: one.type for one in definition.attr} if definition is not None else {}
    names, values = operation.attributes[::2], operation.attributes[1::2]
    return {
        name: op_def_library.value_to_attr_value(value, kinds[name], name)
        for name, value in zip(names, values, strict=True)
        if name in kinds and value is not None
    }


def _of_call(operation: EagerOperation, function: Any) -> Mapping[str, Any]:
    from tensorflow.python.framework import op_def_library

    called = {
        "Tin": ("list(type)", [one.dtype for one in operation.inputs]),
        "Tout": ("list(type)", [one.dtype for one in operation.outputs]),
        "f": ("func", text(function.name)),
    }
    return {
        name: op_def_library.value_to_attr_value(value, kind, name)
        for name, (kind, value) in called.items()
    }


def _of_process(
    operations: Iterable[EagerOperation],
) -> tuple[list[Any], dict[str, Any], frozenset[int]]:
    """Return the variables whose handles the operations have, the functions that they call, and the
    ids of the handles of iterators."""
    from tensorflow.python.data.ops import iterator_ops
    from tensorflow.python.eager.polymorphic_function import atomic_function
    from tensorflow.python.ops import resource_variable_ops

    given = (one for each in operations for one in each.inputs)
    living = [one.handle() for one in given if one.handle is not None]
    handles = {id(one) for one in living if one is not None}
    kinds = resource_variable_ops.BaseResourceVariable
    variables: dict[int, Any] = {}
    functions: dict[str, Any] = {}
    iterators: set[int] = set()
    for thing in gc.get_objects():
        own = type(thing)  # not `isinstance`, which may run code of the script's
        if issubclass(own, iterator_ops.OwnedIterator):
            iterators.add(id(thing.__dict__.get("_iterator_resource")))
        elif issubclass(own, atomic_function.AtomicFunction):
            functions[text(thing.name)] = thing
        elif (
            issubclass(own, kinds)
            # What a write returns has the handle, too.
            and not issubclass(own, resource_variable_ops._UnreadVariable)
            and id(handle := thing.__dict__.get("_handle")) in handles
        ):
            variables[id(handle)] = thing
    return list(variables.values()), functions, frozenset(iterators)
