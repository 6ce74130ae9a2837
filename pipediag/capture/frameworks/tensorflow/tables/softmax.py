"""What a step computes for each of many classes: losses over a softmax, logits, and back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.lookups import is_source
from pipediag.capture.frameworks.tensorflow.tables.parts import Place, place_of
from pipediag.capture.frameworks.tensorflow.tables.step_graph import (
    At,
    StepGraph,
    calls_functions,
    in_gradients,
    of_all_devices,
)
from pipediag.session.recorded_loops import RecordedSoftmax
from pipediag.vocabulary import SparseOrDense

_LOSSES: dict[str, SparseOrDense] = {
    "SparseSoftmaxCrossEntropyWithLogits": "sparse",
    "SoftmaxCrossEntropyWithLogits": "dense",
}
"""Losses by the labels that they take. A softmax by itself may be attention's, over the places of a
long text."""
_PRODUCTS = ("MatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum")
_HANDS_ON = ("Identity", "Cast", "Reshape", "Transpose", "StopGradient")
"""Operations that a weight may pass before it is multiplied by."""
_FEWEST_CLASSES = 1000
"""Own choice: ImageNet's classes are as many, and vocabularies more."""


def softmaxes_in(
    step: StepGraph, variables: dict[int, Any]
) -> Iterator[tuple[Any, RecordedSoftmax]]:
    """Yield the losses whose logits are products with a variable, with that variable.

    A sampled softmax is none: its logits are products with rows that were gathered.

    Args:
        variables: those of the step, by the ids of their handles.
    """
    for frame, op in step.operations:
        if op.type in _LOSSES:
            found = _of(step, At(frame, op.inputs[0]), _LOSSES[op.type], variables)
            if found is not None:
                _, softmax = found
                *_, first = _back(step, At(frame, op.inputs[1]), softmax.classes)
                softmax.labels_given = _last(first) == softmax.classes and is_source(step, first)
                yield found


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


def _of(
    step: StepGraph, logits: At, labels: SparseOrDense, variables: dict[int, Any]
) -> tuple[Any, RecordedSoftmax] | None:
    classes = _last(logits)
    if classes is None:
        return None
    path = list(_back(step, logits, classes))
    weights = _weights(step, path[-1], classes, variables)
    if weights is None:
        return None
    rows, columns = weights.shape.as_list()
    return of_all_devices(weights), RecordedSoftmax(
        weights=weights.name.removesuffix(":0"),
        classes=classes,
        features=rows if columns == classes else columns,
        positions=_positions(path),
        labels=labels,
        device=weights.device or None,
        compiled=path[-1].frame.compiled,
    )


def _weights(step: StepGraph, product: At, classes: int, variables: dict[int, Any]) -> Any:
    """Return the variable of a product, with a row or a column for each class; or None."""
    if product.op.type not in _PRODUCTS:
        return None
    for factor in product.inputs():
        at = step.source(factor)
        while at.op.type in _HANDS_ON:
            at = step.source(at.inputs()[0])
        handle = step.captured(at.inputs()[0]) if at.op.type == "ReadVariableOp" else None
        variable = variables.get(id(handle))
        if variable is not None and variable.shape.rank == 2 and classes in variable.shape:
            return variable
    return None


def _back(step: StepGraph, at: At, classes: int) -> Iterator[At]:
    """Yield the tensors that logits or labels are made of, one from another, as long as they have a
    number for each class."""
    seen = set()
    following: At | None = at
    while following is not None:
        at = step.source(following)
        if at.key in seen:
            return
        seen.add(at.key)
        yield at
        if at.op.type in _PRODUCTS:
            return
        wide = [one for one in at.inputs() if (one.tensor.shape.rank or 0) >= 2]
        following = next((one for one in wide if _last(one) == classes), None)


def _last(at: At) -> int | None:
    """Return its last dimension."""
    last = at.tensor.shape.as_list()[-1] if at.tensor.shape.rank else None
    return None if last is None else int(last)


def _positions(path: list[At]) -> int | None:
    """Return the places of an example, as the words of a text; None where that is not fixed.

    Logits are made two-dimensional on their way, before or behind the product.
    """
    within = [at.tensor.shape.as_list()[1:-1] for at in path]
    if any(length is None for lengths in within for length in lengths):
        return None
    return max(int(math.prod(lengths)) for lengths in within)
