"""Operations of a step whose time a finding needs: passes over a table and reads of all of it, work
on a number for each of many classes, and what only metrics need.

What they do decides, not their scopes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

from pipediag.capture.frameworks.tensorflow.tables.lookups import gathers_rows
from pipediag.capture.frameworks.tensorflow.tables.step_graph import (
    At,
    Frame,
    StepGraph,
    calls_functions,
    in_gradients,
    of_all_devices,
)
from pipediag.capture.frameworks.tensorflow.tables.whole_tables import WholeTables, writes
from pipediag.session.recorded_loops import Softmax
from pipediag.vocabulary import SparseOrDense

Key = TypeVar("Key")
Label = TypeVar("Label")
Place = tuple[int, str]
"""Identity of an operation: the number of its frame, and its name there."""
Kind = Literal["pass", "copy", "vocabulary", "metrics"]

_READ = "ReadVariableOp"
_MULTIPLIES = frozenset("BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum MatMul".split())
_NO_PASS = _MULTIPLIES | set("Rank Shape ShapeN Size Transpose VariableShape".split())
"""Operations of a layer that multiplies by the whole table, and those that look at shapes alone."""


def work_on_table(
    step: StepGraph, whole: WholeTables, variable: Any
) -> Iterator[tuple[Place, Kind]]:
    """Yield the operations that pass over all of a table or its slots, such as an optimizer's and a
    regulariser's, and those that read or cast all of it for a lookup."""
    found = whole.of_shape(tuple(variable.shape.as_list()))
    for frame, op, _ in found.touching(variable.handle):
        if op.type == _READ or _casts_what_was_read(step, frame, op):
            yield place_of(frame, op), "copy"
        elif op.type not in _NO_PASS and not gathers_rows(step, frame, op):
            yield place_of(frame, op), "pass"


def _casts_what_was_read(step: StepGraph, frame: Frame, op: Any) -> bool:
    return bool(op.type == "Cast" and step.source(At(frame, op.inputs[0])).op.type == _READ)


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
            ),
        )


def over_many_classes(step: StepGraph, weights: set[tuple[int, ...]]) -> Iterator[Place]:
    """Yield the operations on a number for each class, where a loss is over many of them; without
    an optimizer's on weights, whose shapes are given, with a column for each class."""
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
