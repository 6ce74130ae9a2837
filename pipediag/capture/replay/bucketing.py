"""`bucket_by_sequence_length` in place of a batch, with buckets at quantiles of real lengths."""

from __future__ import annotations

from typing import Any

from pipediag.capture.replay.elements import first_elements
from pipediag.capture.replay.graph import Node, given_arguments
from pipediag.capture.replay.refusal import NotReplayableError, at_start, said
from pipediag.vocabulary import Scalar

MEASURED_LENGTHS = 1000
"""Enough for quartiles to be right within some percent of the elements."""
READING_LIMIT_S = 5.0
"""Of a slow pipeline fewer lengths are measured."""


def bucketed(node: Node, parameters: dict[str, Scalar], inputs: list[Any]) -> Any:
    """Batches of the same size as before, each of elements of similar length.

    Raises:
        NotReplayableError: no component varies in length, or hardly.
    """
    assert node.call is not None
    name = said(node.call.operation)
    (dataset,) = inputs
    given = given_arguments(node.call, inputs, node.parameters).arguments
    component = _component_of_varying_length(dataset.element_spec)
    if component is None:
        raise NotReplayableError(
            f"The elements of {name} all have the same shape, so there are no "
            "lengths to sort them by."
        )
    if _pads_to_fixed_length(given.get("padded_shapes"), component):
        raise NotReplayableError(f"{at_start(name)} pads to a fixed length.")
    boundaries = _boundaries(dataset, component, int(parameters.get("buckets") or 4))
    if not boundaries:
        raise NotReplayableError(f"The elements of {name} are nearly all of the same length.")
    kept = ("padded_shapes", "padding_values", "drop_remainder", "name")
    return dataset.bucket_by_sequence_length(
        lambda *element: _length(_packed(element), component),
        boundaries,
        [given["batch_size"]] * (len(boundaries) + 1),
        **{name: given[name] for name in kept if name in given},
    )


def _packed(arguments: tuple[Any, ...]) -> Any:
    """An element as it was before tf.data spread a tuple over the arguments of a function."""
    return arguments[0] if len(arguments) == 1 else arguments


def _component_of_varying_length(element_spec: Any) -> int | None:
    """Position of the first component whose leading dimension is not known beforehand."""
    from tensorflow.python.data.util import nest

    for position, spec in enumerate(nest.flatten(element_spec)):
        shape = getattr(spec, "shape", None)
        if shape is not None and shape.rank and shape[0] is None:
            return position
    return None


def _pads_to_fixed_length(padded_shapes: Any, component: int) -> bool:
    from tensorflow.python.data.util import nest
    from tensorflow.python.framework import tensor_shape

    if padded_shapes is None:
        return False
    # Lists are shapes to this nest, tuples are structure.
    shapes = nest.flatten(padded_shapes)
    if len(shapes) <= component:
        return False
    try:
        dimensions = tensor_shape.as_shape(shapes[component])
    except (TypeError, ValueError):
        return False  # a tensor: known only when the pipeline runs
    return bool(dimensions.rank and dimensions[0] not in (None, -1))


def _length(element: Any, component: int) -> Any:
    from tensorflow.python.data.util import nest
    from tensorflow.python.ops import array_ops

    return array_ops.shape(nest.flatten(element)[component])[0]


def _boundaries(dataset: Any, component: int, buckets: int) -> list[int]:
    elements = first_elements(dataset, MEASURED_LENGTHS, READING_LIMIT_S).elements
    lengths = [int(_length(element, component)) for element in elements]
    return boundaries_between(lengths, buckets)


def boundaries_between(lengths: list[int], buckets: int) -> list[int]:
    """Where buckets begin that share the lengths evenly, fewer where many lengths are equal.

    A boundary is the first length that no longer belongs to the bucket before it.
    """
    ordered = sorted(lengths)
    last = len(ordered) - 1
    found = {ordered[last * k // buckets] + 1 for k in range(1, buckets)} if ordered else set()
    return sorted(boundary for boundary in found if boundary <= ordered[last])
