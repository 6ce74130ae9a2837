"""Losses of a step that take a softmax over all rows of a weight, as the words of a vocabulary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.copies import of_all_devices
from pipediag.capture.frameworks.tensorflow.tables.ids import is_source
from pipediag.capture.frameworks.tensorflow.tables.unfolded import At, Unfolded
from pipediag.session.recorded_tables import RecordedSoftmax
from pipediag.vocabulary import SparseOrDense

_LOSSES: dict[str, SparseOrDense] = {
    "SparseSoftmaxCrossEntropyWithLogits": "sparse",
    "SoftmaxCrossEntropyWithLogits": "dense",
}
"""By the labels that they take."""
_PRODUCTS = ("MatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum")
_HANDS_ON = ("Identity", "Cast", "Reshape", "Transpose", "StopGradient")
"""What a weight may pass before it is multiplied by."""


def softmaxes_in(
    step: Unfolded, variables: dict[int, Any]
) -> Iterator[tuple[Any, RecordedSoftmax]]:
    """Those whose logits are products with a variable, with that variable.

    A sampled softmax is none: its logits are products with rows that were gathered.

    Args:
        variables: those of the step, by the ids of their handles.
    """
    for frame, op in step.operations:
        if op.type in _LOSSES:
            found = _of(step, At(frame, op.inputs[0]), _LOSSES[op.type], variables)
            if found is not None:
                _, softmax = found
                softmax.labels_given = _are_given(step, At(frame, op.inputs[1]), softmax.classes)
                yield found


def _of(
    step: Unfolded, logits: At, labels: SparseOrDense, variables: dict[int, Any]
) -> tuple[Any, RecordedSoftmax] | None:
    classes = _last(logits)
    if classes is None:
        return None
    way = list(_back(step, logits, classes))
    weights = _weights(step, way[-1], classes, variables)
    if weights is None:
        return None
    rows, columns = weights.shape.as_list()
    return of_all_devices(weights), RecordedSoftmax(
        weights=weights.name.removesuffix(":0"),
        classes=classes,
        features=rows if columns == classes else columns,
        positions=_positions(way),
        labels=labels,
        device=weights.device or None,
        compiled=way[-1].frame.compiled,
    )


def _are_given(step: Unfolded, labels: At, classes: int) -> bool:
    """Whether the batch has a number for each class, and the step makes them of no class."""
    *_, first = _back(step, labels, classes)
    return _last(first) == classes and is_source(step, first)


def _weights(step: Unfolded, product: At, classes: int, variables: dict[int, Any]) -> Any:
    """The variable of which it is a product, with a row or a column for each class; or None."""
    if product.op.type not in _PRODUCTS:
        return None
    for factor in product.inputs():
        variable = variables.get(id(_handle_behind(step, factor)))
        if variable is not None and variable.shape.rank == 2 and classes in variable.shape:
            return variable
    return None


def _back(step: Unfolded, at: At, classes: int) -> Iterator[At]:
    """The tensors that the logits are made of, one from another, as long as they have a number for
    each class."""
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


def _handle_behind(step: Unfolded, at: At) -> Any:
    """Of the variable whose value it is; None where it is computed."""
    at = step.source(at)
    while at.op.type in _HANDS_ON:
        at = step.source(at.inputs()[0])
    return step.captured(at.inputs()[0]) if at.op.type == "ReadVariableOp" else None


def _last(at: At) -> int | None:
    """Its numbers for each class, or whatever its last dimension is."""
    last = at.tensor.shape.as_list()[-1] if at.tensor.shape.rank else None
    return None if last is None else int(last)


def _positions(way: list[At]) -> int | None:
    """Of an example, as the words of a text are; None where that is not fixed.

    Logits are made two-dimensional on their way, before or behind the product.
    """
    within = [at.tensor.shape.as_list()[1:-1] for at in way]
    if any(length is None for lengths in within for length in lengths):
        return None
    return max(int(math.prod(lengths)) for lengths in within)
