"""The embedding tables of a step, its losses over many classes, and operations whose time a finding
needs, read from its graph.

These operations pass over a table or read all of it, work on a number for each of many classes, or
are needed by metrics alone. They are recognised by what they do, not by their scopes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from pipediag.capture.frameworks.tensorflow.tables.step_graph import (
    At,
    Frame,
    Given,
    Key,
    Lookup,
    NotFromABatchError,
    StepGraph,
    arguments_of,
    calls_functions,
    cast_of,
    compute,
    draws_one_batch,
    gathers_rows,
    given_by_batch,
    given_by_call,
    in_gradients,
    lookups_in,
    masks_zero,
    of_all_devices,
    sources_of,
)
from pipediag.capture.frameworks.tensorflow.tables.whole_tables import WholeTables, Writes, writes
from pipediag.capture.pipelines.functions import constant_bytes
from pipediag.capture.runtime import UnreadableStepError
from pipediag.session.recorded_loops import RecordedVariable, Softmax
from pipediag.vocabulary import SparseOrDense

Name = TypeVar("Name")
Label = TypeVar("Label")
Place = tuple[int, str]
"""Identity of an operation: the number of its frame, and its name there."""
Kind = Literal["pass", "copy", "vocabulary", "metrics"]

_READ = "ReadVariableOp"
_MULTIPLIES = frozenset("BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum MatMul".split())
_NO_PASS = _MULTIPLIES | set("Rank Shape ShapeN Size Transpose VariableShape".split())
"""Operations that do not count as passes over a table: those of a layer that multiplies by all of
it, and those that read only shapes."""


def work_on_table(
    step: StepGraph, whole: WholeTables, variable: Any
) -> Iterator[tuple[Place, Kind]]:
    """Yield the operations that pass over all of a table or its slots, such as an optimizer's and a
    regulariser's, and those that read or cast all of it for a lookup."""
    found = whole.of_shape(tuple(variable.shape.as_list()))
    for frame, op, _ in found.touching(variable.handle):
        casts = op.type == "Cast" and step.source(At(frame, op.inputs[0])).op.type == _READ
        if op.type == _READ or casts:
            yield place_of(frame, op), "copy"
        elif op.type not in _NO_PASS and not gathers_rows(step, frame, op):
            yield place_of(frame, op), "pass"


def agreed(values: Iterable[tuple[Name, Label | None]]) -> dict[Name, Label | None]:
    """Return the value of each key; None where a key was given different values."""
    found: dict[Name, Label | None] = {}
    for key, value in values:
        found[key] = value if found.setdefault(key, value) == value else None
    return found


def event_names(step: StepGraph, labels: Mapping[Place, Label | None]) -> dict[str, Label | None]:
    """Return the label of each name that a profile may have for an operation; None for all others.

    TensorFlow puts the graphs of functions into their callers, where an operation's name begins
    with that of the call; an operation that is not put there keeps its own name. A name that
    several operations share has a label if all of these have the same one.
    """
    return agreed(
        (name, labels.get(place_of(frame, op)))
        for frame, op in step.operations
        for name in _names(frame, op)
    )


_REDUCTION = "ReduceDatasetOp:"
"""Name in a profile of each operation that goes over a dataset within a step, its work included:
`ReduceDatasetOp::DoCompute`, without a scope, up to the last colon."""


def place_of(frame: Frame, op: Any) -> Place:
    """Return the identity of an operation within the step."""
    return frame.index, op.name


def _names(frame: Frame, op: Any) -> Iterator[str]:
    name, around = op.name, frame
    yield name
    if op.type == "ReduceDataset":
        yield _REDUCTION
    while around.caller is not None:
        name, around = f"{around.call.name}/{name}", around.caller
        yield name


_LOSSES: dict[str, SparseOrDense] = {
    "SparseSoftmaxCrossEntropyWithLogits": "sparse",
    "SoftmaxCrossEntropyWithLogits": "dense",
}
"""Losses, with the kind of labels that they take. A softmax without a loss is none of them: it may
be attention's, over the positions of a long text."""
_HANDS_ON = ("Identity", "Cast", "Reshape", "Transpose", "StopGradient")
"""Operations that a weight may pass through before the product with it."""
_FEWEST_CLASSES = 1000
"""Least number of classes that counts as many. Own choice: ImageNet has as many, and vocabularies
more."""


def softmaxes_in(step: StepGraph, variables: dict[int, Any]) -> Iterator[tuple[Any, Softmax]]:
    """Yield the losses whose logits are products with a variable, each after that variable.

    A sampled softmax is left out: its logits are products with rows that were gathered.

    Args:
        variables: the variables of the step, by the ids of their handles.
    """
    for frame, op in step.operations:
        labels = _LOSSES.get(op.type)
        if labels is None:
            continue
        logits = At(frame, op.inputs[0])
        classes = _last(logits)
        weights = None if classes is None else _weights(step, logits, classes, variables)
        if classes is None or weights is None:
            continue
        rows, columns = weights.shape.as_list()
        yield (
            of_all_devices(weights),
            Softmax(
                weights=weights.name.removesuffix(":0"),
                classes=classes,
                features=rows if columns == classes else columns,
                labels=labels,
            ),
        )


def over_many_classes(step: StepGraph, weights: set[tuple[int, ...]]) -> Iterator[Place]:
    """Yield the operations on a number for each class, if a loss is over many classes. An
    optimizer's operations on weights with a column for each class are left out; `weights` has their
    shapes."""
    counts = {
        count
        for _, op in step.operations
        if op.type in _LOSSES and op.inputs[0].shape.rank
        if (count := op.inputs[0].shape.as_list()[-1]) is not None and count >= _FEWEST_CLASSES
    }
    if not counts:
        return
    for frame, op in step.operations:
        if calls_functions(op):
            continue
        shapes = {tuple(one.shape.as_list()) for one in (*op.inputs, *op.outputs) if one.shape.rank}
        wide = {shape for shape in shapes if len(shape) > 1 and shape[-1] in counts}
        if wide - weights or (wide and in_gradients(op)):
            yield place_of(frame, op)


_BEST = frozenset({"InTopK", "InTopKV2", "TopK", "TopKV2"})
_MOST_COUNTS = 2**16
"""Most numbers in a metric's variable. Own choice: a matrix of 256 classes has as many. Larger
variables are no metric's: averages of weights, or weights from which their decay is taken."""


def only_for_metrics(step: StepGraph) -> Iterator[Place]:
    """Yield the operations that a metric needs, but no gradient and no update of a weight.

    A metric writes few numbers, such as counts, to a variable without a gradient, or takes the best
    of all scores where nothing that is trained depends on them.
    """
    learned: set[Place] = set()
    trained: list[At] = []
    others: list[At] = []
    ends: list[Place] = []
    # A call comes before the operations of the function that it calls, so all inputs of an
    # operation come before it.
    for frame, op in step.operations:
        place, inputs = place_of(frame, op), [At(frame, one) for one in op.inputs]
        made = (step.source(one) for one in inputs)
        if in_gradients(op) or any(place_of(one.frame, one.op) in learned for one in made):
            learned.add(place)
        written = writes(op)
        counts = written and (op.inputs[-1].shape.num_elements() or math.inf) <= _MOST_COUNTS
        if written and (place in learned or not counts):
            trained += inputs
        elif counts or op.type in _BEST:
            others += inputs
            ends.append(place)
    if not trained:
        return
    needed = {place_of(one.frame, one.op) for one in step.upwards(trained)}
    metrics = [*ends, *(place_of(one.frame, one.op) for one in step.upwards(others))]
    yield from (place for place in metrics if place not in needed)


def _weights(step: StepGraph, logits: At, classes: int, variables: dict[int, Any]) -> Any:
    """Return the variable, with a row or a column for each class, whose product is the logits; or
    None."""

    def wide(at: At) -> bool:
        return (at.tensor.shape.rank or 0) >= 2 and _last(at) == classes

    behind = step.upwards([logits], lambda at: wide(at) and at.op.type not in _MULTIPLIES)
    products = (at for at in behind if wide(at) and at.op.type in _MULTIPLIES)
    for factor in (one for product in products for one in product.inputs()):
        read = step.behind(factor, _HANDS_ON)
        handle = step.captured(read.inputs()[0]) if read.op.type == "ReadVariableOp" else None
        variable = variables.get(id(handle))
        if variable is not None and variable.shape.rank == 2 and classes in variable.shape:
            return variable
    return None


def _last(at: At) -> int | None:
    last = at.tensor.shape.as_list()[-1] if at.tensor.shape.rank else None
    return None if last is None else int(last)


_Label = tuple[Kind, int | None]
"""Kind of work of an operation, and its table, by the id of the variable."""
_VOCABULARY: _Label = ("vocabulary", None)
_METRICS: _Label = ("metrics", None)
_NOT_TRACED = (
    "The step runs eagerly, so no graph shows which tables it reads and writes: run it in a "
    "`tf.function`, or without `run_eagerly`, and analyse the script again."
)


class TableInStep:
    """One embedding table in the graph of one step: the step's use of it, and the ids of its
    lookups."""

    def __init__(
        self,
        step: StepGraph,
        variable: Any,
        lookups: list[Lookup],
        writes: Writes,
        whole: WholeTables,
    ) -> None:
        self.variable = of_all_devices(variable)
        self._step = step
        shape = tuple(variable.shape.as_list())
        self.record = RecordedVariable(
            layer=variable.name.removesuffix(":0"),
            rows=shape[0],
            dim=math.prod(shape[1:]),
            dtype=variable.dtype.base_dtype.name,
            trainable=bool(variable.trainable),
            mask_zero=masks_zero(step, lookups),
        )
        self.use = whole.use_of(variable, lookups, writes)
        self.softmax: Softmax | None = None
        """Loss over all of its rows, where the table also serves as output weights."""
        self.ids_missing: str | None = None
        """Reason why its ids can't be computed from a batch."""
        self.cast_through: str | None = None
        """The narrowest float type that the ids are cast to on the way to a lookup."""
        self.ids_incomplete: str | None = None
        """Reason why some of its lookups are not counted."""
        self._followed: list[Lookup] = []
        """Lookups whose ids can be computed from a batch."""
        self._needed: set[Key] = set()
        """Tensors from which its ids are computed."""
        self._follow(lookups)

    def _follow(self, lookups: list[Lookup]) -> None:
        """Find the tensors that give the ids of each lookup; ids that are drawn at random have
        none."""
        lacks: list[str] = []
        for lookup in lookups:
            try:
                sources = sources_of(self._step, lookup)
            except NotFromABatchError as lack:
                lacks.append(str(lack))
                continue
            self._followed.append(lookup)
            self._needed |= {one.key for one in sources}
        if not self._needed:
            why = lacks[0] if lacks else "they do not come from the batch"
            self.ids_missing = f"The ids can't be computed from a batch: {why}."
            return
        casts = (cast_of(self._step, one.ids) for one in self._followed)
        self.cast_through = next(filter(None, casts), None)
        if lacks:
            self.ids_incomplete = (
                f"{len(lacks)} of {len(lookups)} lookups could not be followed, as their ids can't "
                f"be computed from a batch: {lacks[0]}."
            )

    def answers(self, given: Given) -> bool:
        """Return True if its ids can be computed from `given`."""
        return self._needed <= given.keys()

    def looked_up(self, given: Given) -> list[Any]:
        """Compute the ids of each lookup as the step computes them; they are NumPy's arrays."""
        return [compute(self._step, one.ids, given).numpy() for one in self._followed]


class Step:
    """One graph, with the variables that it may read and write."""

    def __init__(self, graph: StepGraph, variables_in_graph: Sequence[Any]) -> None:
        self.graph = graph
        lookups: dict[int, list[Lookup]] = {}
        for lookup in lookups_in(graph):
            lookups.setdefault(id(lookup.handle), []).append(lookup)
        variables = {id(one.handle): one for one in variables_in_graph}
        writes = Writes.of(graph)
        self._whole = WholeTables(graph)
        self.softmaxes = list(softmaxes_in(graph, variables))
        self.tables = [
            TableInStep(graph, variables[handle], found, writes, self._whole)
            for handle, found in lookups.items()
            if handle in variables and _is_a_table(variables[handle], writes)
        ]
        # A function that is called twice has one graph, whose constants count once.
        graphs = {id(frame.graph): frame.graph for frame in graph.frames}
        self.constant_bytes = sum(constant_bytes(one.get_operations()) for one in graphs.values())
        self._variables = variables.values()

    def labels(self) -> dict[str, _Label | None]:
        """Return the work of operations, by the names that a profile may have for them."""
        labels: dict[Place, _Label | None] = agreed(self._on_whole_variables())
        for place in only_for_metrics(self.graph):
            labels.setdefault(place, _METRICS)
        weights = {tuple(one.shape.as_list()) for one in self._variables}
        for place in over_many_classes(self.graph, weights):
            labels.setdefault(place, _VOCABULARY)
        return event_names(self.graph, labels)

    def _on_whole_variables(self) -> Iterator[tuple[Place, _Label]]:
        """Yield the operations on all of a table. For weights of a softmax that are no table, yield
        only the passes of their update, as work on the vocabulary."""
        tables = {id(table.variable) for table in self.tables}
        multiplied = {id(weight) for weight, _ in self.softmaxes}
        for one in self._variables:
            variable = id(of_all_devices(one))
            if variable not in tables | multiplied:
                continue
            for place, kind in work_on_table(self.graph, self._whole, one):
                if variable in tables:
                    yield place, (kind, variable)
                elif kind == "pass":
                    yield place, _VOCABULARY


def _is_a_table(variable: Any, writes: Writes) -> bool:
    """Return False for an optimizer's slot or a metric's counts, which a step writes too."""
    if not variable.dtype.is_floating or not variable.shape.is_fully_defined():
        return False
    trained = variable.trainable or variable.handle not in writes
    return bool(trained and variable.shape.rank >= 1 and variable.shape[0] > 1)


class TracedTables:
    """The embedding tables of a loop, read from the functions traced for its steps: each table
    once, in the function that looks it up.

    Raises:
        UnreadableStepError: no function was traced, or its graph can't be read.
    """

    def __init__(self, functions: Iterable[Any]) -> None:
        traced = [(one, step) for one in functions if (step := _step_of(one)) is not None]
        if not traced:
            raise UnreadableStepError(_NOT_TRACED)
        self._traced = traced
        self._steps = steps = [step for _, step in traced]
        self.tables: Sequence[TableInStep] = _each_once(steps)
        # A name that stands for different work in two functions gets no label.
        labels = agreed(one for step in steps for one in step.labels().items())
        names: dict[_Label | None, list[str]] = {}
        for name, label in labels.items():
            names.setdefault(label, []).append(name)
        self.vocabulary_operations = names.get(_VOCABULARY, [])
        self.metric_operations = names.get(_METRICS, [])
        seen = {id(weight): one for step in steps for weight, one in step.softmaxes}
        for table in self.tables:
            table.use.pass_operations = names.get(("pass", id(table.variable)), [])
            table.use.copy_operations = names.get(("copy", id(table.variable)), [])
            table.softmax = seen.get(id(table.variable))
        self.softmaxes: Sequence[Softmax] = list(seen.values())
        self.constant_bytes = sum(step.constant_bytes for step in steps)

    def draws_one_batch(self) -> bool:
        """Return True if a call draws one batch from one iterator, or is given its batch."""
        return all(draws_one_batch(step.graph) for step in self._steps)

    def of_batch(self, batch: Any) -> Given:
        """Return the values from which ids are computed, of a batch that the step draws itself."""
        from tensorflow.python.data.util import structure

        # An iterator hands out a ragged or a sparse tensor as a single one that holds all of it.
        parts = structure.to_tensor_list(structure.type_spec_from_value(batch), batch)
        return {key: at for s in self._steps for key, at in given_by_batch(s.graph, parts).items()}

    def of_call(self, function: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Given | None:
        """Return the same values for a call with a batch; None if the function is no step."""
        step = next((step for one, step in self._traced if one is function), None)
        return None if step is None else given_by_call(step.graph, tuple(args), kwargs)


def _each_once(steps: Sequence[Step]) -> list[TableInStep]:
    """Return each table once: from the step that trains it, if one does, and only the first of a
    strategy's copies."""
    found: dict[int, TableInStep] = {}
    for table in (one for step in steps for one in step.tables):
        known = found.get(id(table.variable))
        if known is None or (known.use.gradient is None and table.use.gradient is not None):
            found[id(table.variable)] = table
    return list(found.values())


def _step_of(function: Any) -> Step | None:
    """Read the latest trace for the largest batches: smaller ones end an epoch."""
    traced = list(function._list_all_concrete_functions())
    if not traced:
        return None
    # `max` takes the first of equals, here the one that was traced last.
    concrete = max(reversed(traced), key=_rows)
    try:
        variables = tuple(concrete.graph.variables)
    except AssertionError as gone:
        raise UnreadableStepError("A variable of the step is gone.") from gone
    return Step(StepGraph(concrete), variables)


def _rows(concrete: Any) -> float:
    """Return the rows of all arguments; infinity if a dimension is open, which fits any batch."""
    shapes = [one.shape for one in arguments_of(concrete.graph)]
    sizes = [shape[0] for shape in shapes if shape.rank]
    return math.inf if any(size is None for size in sizes) else float(sum(sizes))
