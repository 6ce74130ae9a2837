"""With which parameters a tf.data call was made, and what the dataset says of its elements."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from pipediag.capture.pipelines.source_files import uncompressed_bytes
from pipediag.vocabulary import Scalar

_PARAMETERS = frozenset(
    "num_parallel_calls deterministic buffer_size batch_size drop_remainder count cycle_length "
    "block_length reshuffle_each_iteration num_parallel_reads compression_type filename path "
    "use_unbounded_threadpool seed num_shards index size shift stride "
    "pad_to_bucket_boundary".split()
)


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def takes_name(function: Callable[..., Any]) -> bool:
    """Whether the call can be given a `name=`."""
    kinds = _signature(function).parameters.values()
    return any(p.name == "name" or p.kind is inspect.Parameter.VAR_KEYWORD for p in kinds)


def given_in_place(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The `name` that is among these, where it can't be given by keyword as well; else nothing."""
    by_place = (
        name
        for name, parameter in _signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    return tuple(value for name, value in zip(by_place, args, strict=False) if name == "name")


def parameters_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Scalar]:
    """Those that are worth knowing, among the ones that were given."""
    given = _signature(function).bind(*args, **kwargs).arguments
    parameters = {
        name: _plain(given[name])
        for name in sorted(_PARAMETERS.intersection(given))
        if name in given
    }
    if "filenames" in given:
        parameters["file_count"] = _length(given["filenames"])
        size = uncompressed_bytes(given["filenames"], given.get("compression_type"))
        if size is not None:
            parameters["file_bytes"] = size
    return parameters


def _plain(value: Any) -> Scalar:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    for convert in (int, str):
        try:
            return convert(value)
        except (TypeError, ValueError):
            continue
    return None


def _length(filenames: Any) -> int | None:
    if isinstance(filenames, str | bytes):
        return 1
    try:
        return len(filenames)
    except TypeError:
        return 1 if getattr(filenames, "shape", None) == () else None


def cardinality_of(dataset: Any) -> int | None:
    """Elements in one pass, -1 where there is no end; None where that is not known."""
    from tensorflow.python.eager import context

    if not context.executing_eagerly():
        return None
    count = int(dataset.cardinality())
    return None if count == -2 else count


def element_bytes_of(dataset: Any) -> int | None:
    """Bytes of one element, where its shapes are static."""
    from tensorflow.python.data.util import structure

    total = 0
    shapes = structure.get_flat_tensor_shapes(dataset.element_spec)
    types = structure.get_flat_tensor_types(dataset.element_spec)
    for shape, dtype in zip(shapes, types, strict=True):
        if not shape.is_fully_defined() or dtype.name in ("string", "variant", "resource"):
            return None
        total += shape.num_elements() * dtype.size
    return total
