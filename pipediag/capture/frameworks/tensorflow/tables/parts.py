"""Operations of a step by the part of an embedding table's cost that they are, and those of a
number for each of many classes.

What they do to a table decides, not their scopes: what touches a tensor of its size, or writes its
rows, and what leads from a gradient to these writes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from pipediag.capture.frameworks.tensorflow.tables.lookups import gathers_rows
from pipediag.capture.frameworks.tensorflow.tables.step_graph import (
    At,
    Frame,
    StepGraph,
    calls_functions,
    downwards,
    in_gradients,
    of_all_devices,
)
from pipediag.capture.frameworks.tensorflow.tables.whole_tables import (
    SPREADS,
    WholeTables,
    handles,
    writes,
)
from pipediag.session.recorded_loops import Softmax
from pipediag.vocabulary import SparseOrDense, TablePart

Key = TypeVar("Key")
Label = TypeVar("Label")
Place = tuple[int, str]
"""Identity of an operation: the number of its frame, and its name there."""

_READ = "ReadVariableOp"
_ASSIGN = "AssignVariableOp"
_SUMS_ROWS = SPREADS | {"Unique", "UniqueV2"}
_JOINS = frozenset({"AddN", "Cast", "ConcatV2", "Identity", "IdentityN", "Reshape"})
"""Operations that make one gradient of a table out of those of its lookups."""
_MULTIPLIES = frozenset("BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum MatMul".split())
_FROM_A_BATCH = frozenset({"IteratorGetNext", "Placeholder"})
_GATHERS = frozenset({"Gather", "GatherV2"})
_NO_PASS = _MULTIPLIES | set("Rank Shape ShapeN Size Transpose VariableShape".split())
"""Operations of a layer that multiplies by the whole table, and those that look at shapes alone."""


class TableParts:
    """Finds the parts of one table in one step."""

    def __init__(self, step: StepGraph, whole: WholeTables, variable: Any) -> None:
        self._step = step
        self._handle = variable.handle
        self._shape = tuple(variable.shape.as_list())
        self._touching = whole.of_shape(self._shape).touching(self._handle)
        self._touched = {place_of(frame, op) for frame, op in self._touching}

    def by_place(self) -> dict[Place, TablePart]:
        """Return the part of each operation that has one."""
        found: dict[Place, TablePart] = {}
        for frame, op in self._touching:
            if writes(op):
                found.update(self._write(frame, op))
        for frame, op in self._touching:
            part = self._of_touching(frame, op)
            # A read copies, whatever the copy is for.
            if part is not None and (op.type == _READ or place_of(frame, op) not in found):
                found[place_of(frame, op)] = part
        return found

    def _write(self, frame: Frame, op: Any) -> Iterator[tuple[Place, TablePart]]:
        """Yield one write to the table or a slot of it, and what leads to it."""
        origin = _origin(self._step, frame, op)
        part: TablePart = "regularizer" if self._is_constraint(frame, op, origin) else "update"
        yield place_of(frame, op), part
        # What is written without a gradient may be computed by the whole model.
        known = origin.has_gradient or part == "regularizer"
        for at in origin.computing:
            if known or place_of(at.frame, at.op) in self._touched:
                yield place_of(at.frame, at.op), "gradient" if at.op.type in _SUMS_ROWS else part
        for at in origin.joining:
            yield place_of(at.frame, at.op), "gradient"

    def _is_constraint(self, frame: Frame, op: Any, origin: _Origin) -> bool:
        """Return True if the table's own value is written back, changed by no gradient."""
        if op.type != _ASSIGN or origin.has_gradient:
            return False
        read = [(at.frame, at.op) for at in origin.computing if at.op.type == _READ]
        of = [one for each in ((frame, op), *read) for one in handles(self._step, *each)]
        return all(one is self._handle for one in of)

    def _of_touching(self, frame: Frame, op: Any) -> TablePart | None:
        """Return the part of an operation that leads to no write."""
        if op.type == _READ:
            return "copy"
        if in_gradients(op):
            return self._of_gradient(frame, op)
        if gathers_rows(self._step, frame, op):
            return "lookup"
        if op.type in _NO_PASS or not self._any_whole(op.inputs):
            return None
        # Norms of gradients are the optimizer's, those of the table a regulariser's.
        if _origin(self._step, frame, op, first=0).has_gradient:
            return "update"
        return "copy" if op.type == "Cast" else _term(op)

    def _of_gradient(self, frame: Frame, op: Any) -> TablePart | None:
        if op.type in _SUMS_ROWS or op.type in _JOINS:
            return "gradient"
        if op.type in _NO_PASS or not self._any_whole(op.outputs) or self._any_each(op.inputs):
            return None
        # A layer that uses all of the table, as tied output weights, makes such a gradient, too.
        ends = downwards(op, lambda at: at.type not in _JOINS and in_gradients(at))
        gradients = (at for at in ends if at.type not in _JOINS and in_gradients(at))
        used = any(_takes_a_batch(self._step, frame, one) for one in gradients)
        return "gradient" if used else "regularizer"

    def _any_each(self, tensors: Iterable[Any]) -> bool:
        """Return True if one of these has the table's shape for each example: what sums them up
        belongs to the product that they come from, as that of tied output weights."""
        longer = (one.shape for one in tensors if (one.shape.rank or 0) > len(self._shape))
        return any(tuple(shape.as_list())[-len(self._shape) :] == self._shape for shape in longer)

    def _any_whole(self, tensors: Iterable[Any]) -> bool:
        shapes = (one.shape for one in tensors if one.shape.rank == len(self._shape))
        return any(tuple(shape.as_list()) == self._shape for shape in shapes)


class _Origin(NamedTuple):
    """Origin of an operation's inputs, back to the gradients and to what joins them."""

    computing: list[At]
    """What optimizers do with a gradient."""
    joining: list[At]
    """What makes one gradient of a table out of those of its lookups."""
    has_gradient: bool


def _origin(step: StepGraph, frame: Frame, op: Any, first: int = 1) -> _Origin:
    def counts(at: At) -> bool:
        return at.tensor.shape.rank != 0 and at.op.type not in _FROM_A_BATCH

    def joins(at: At) -> bool:
        return counts(at) and in_gradients(at.op) and at.op.type in _SUMS_ROWS | _JOINS

    inputs = (At(frame, one) for one in op.inputs[first:])
    reached = step.upwards(inputs, lambda at: counts(at) and not in_gradients(at.op))
    known = [at for at in reached if counts(at)]
    gradients = [at for at in known if in_gradients(at.op)]
    computing = [at for at in known if not in_gradients(at.op)]
    joining = [at for at in step.upwards(gradients, joins) if joins(at)]
    return _Origin(computing, joining, bool(gradients))


def _term(op: Any) -> TablePart | None:
    """Return the regulariser's part if all that is computed of it is one number, as a term of the
    loss, or leaves its graph; None for products with a layer's input and for gathered rows."""
    uses = downwards(op, lambda at: not in_gradients(at))
    used = any(at.type in _MULTIPLIES | _GATHERS and not in_gradients(at) for at in uses)
    return None if used else "regularizer"


def _takes_a_batch(step: StepGraph, frame: Frame, op: Any) -> bool:
    """Return True if a batch goes into it; single numbers, as a loss that scales it, do not
    count."""

    def counts(at: At) -> bool:
        return bool(at.tensor.shape.rank != 0 and at.tensor.dtype.name != "resource")

    behind = step.upwards((At(frame, one) for one in op.inputs), counts)
    return any(
        counts(at) and at.op.type in _FROM_A_BATCH and step.captured(at) is None for at in behind
    )


def agreed(values: Iterable[tuple[Key, Label | None]]) -> dict[Key, Label | None]:
    """Return the value of each key; None where several were given that differ."""
    found: dict[Key, Label | None] = {}
    for key, value in values:
        found[key] = value if found.setdefault(key, value) == value else None
    return found


def event_names(step: StepGraph, labels: Mapping[Place, Label | None]) -> dict[str, Label | None]:
    """Return the labels by the names that a profile may have for operations; None for all others.

    TensorFlow puts the graphs of functions into their callers, and an operation's name behind that
    of the call; what it does not put there keeps its own. A name of several operations has a label
    where all of these have it.
    """
    return agreed(
        (name, labels.get(place_of(frame, op)))
        for frame, op in step.operations
        for name in _names(frame, op)
    )


_REDUCTION = "ReduceDatasetOp:"
"""Name that a profile has for every operation that goes over a dataset within a step, with its
work: `ReduceDatasetOp::DoCompute`, without a scope, up to the last colon."""


def place_of(frame: Frame, op: Any) -> Place:
    """Return what tells an operation from the others of the step."""
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
"""Losses by the labels that they take. A softmax by itself may be attention's, over the places of a
long text."""
_HANDS_ON = ("Identity", "Cast", "Reshape", "Transpose", "StopGradient")
"""Operations that a weight may pass before it is multiplied by."""
_FEWEST_CLASSES = 1000
"""Own choice: ImageNet's classes are as many, and vocabularies more."""


def softmaxes_in(step: StepGraph, variables: dict[int, Any]) -> Iterator[tuple[Any, Softmax]]:
    """Yield the losses whose logits are products with a variable, with that variable.

    A sampled softmax is none: its logits are products with rows that were gathered.

    Args:
        variables: those of the step, by the ids of their handles.
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
                device=weights.device or None,
            ),
        )


def over_many_classes(step: StepGraph, weights: set[tuple[int, ...]]) -> Iterator[Place]:
    """Yield the operations on a number for each class, where a loss is over many of them.

    An optimizer's operations on weights of a row or a column for each class, whose shapes are
    given, are no such thing; what sums up their gradients, one for each example, is.
    """
    counts = {
        count
        for _, op in step.operations
        if op.type in _LOSSES and op.inputs[0].shape.rank
        if (count := op.inputs[0].shape.as_list()[-1]) is not None and count >= _FEWEST_CLASSES
    }
    if not counts:
        return
    of_classes = {shape for shape in weights if len(shape) == 2 and not counts.isdisjoint(shape)}
    for frame, op in step.operations:
        if calls_functions(op):
            continue
        shapes = {tuple(one.shape.as_list()) for one in (*op.inputs, *op.outputs) if one.shape.rank}
        wide = {shape for shape in shapes if len(shape) > 1 and shape[-1] in counts}
        each = any(len(shape) > 2 and shape[-2:] in of_classes for shape in shapes)
        if wide - weights or ((wide or each) and in_gradients(op)):
            yield place_of(frame, op)


_BEST = frozenset({"InTopK", "InTopKV2", "TopK", "TopKV2"})
_MOST_COUNTS = 2**16
"""Numbers of a metric's variable. Own choice: a matrix of 256 classes has as many. Larger ones, as
averages of weights and weights from which their decay is taken, are no metric's."""


def only_for_metrics(step: StepGraph) -> Iterator[Place]:
    """Yield the operations that no gradient and no update of a weight needs, but a metric does.

    A metric is what writes few numbers to a variable without a gradient, such as counts, and the
    best of all scores where nothing that is trained comes of them.
    """
    learned: set[Place] = set()
    trained: list[At] = []
    others: list[At] = []
    ends: list[Place] = []
    # A call comes before the operations of what it calls, so that all that one reads came before.
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
    """Return the variable that logits are a product with, which has a row or a column for each
    class; or None."""

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
