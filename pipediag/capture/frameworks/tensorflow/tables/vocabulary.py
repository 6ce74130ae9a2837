"""What a step computes for each of many classes: logits of a vocabulary, their loss, and back."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.capture.frameworks.tensorflow.tables.lookups import in_gradients
from pipediag.capture.frameworks.tensorflow.tables.parts import Place, place_of
from pipediag.capture.frameworks.tensorflow.tables.unfolded import Unfolded, calls_functions

_FEWEST_CLASSES = 1000
"""Own choice: ImageNet's classes are as many, and vocabularies more."""
_LOSSES = frozenset({"SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"})
"""A softmax by itself may be attention's, over the places of a long text."""


def over_a_vocabulary(step: Unfolded, weights: set[tuple[int, ...]]) -> Iterator[Place]:
    """Operations on a number for each class, where a loss is over many of them.

    What an optimizer does with weights of a row or a column for each class, whose shapes are given,
    is no such thing. What sums up their gradients, one for each example, is.
    """
    counts = set(_classes(step))
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


def _classes(step: Unfolded) -> Iterator[int]:
    for _, op in step.operations:
        if op.type in _LOSSES and op.inputs[0].shape.rank:
            count = op.inputs[0].shape.as_list()[-1]
            if count is not None and count >= _FEWEST_CLASSES:
                yield count
