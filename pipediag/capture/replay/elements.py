"""The first elements of a dataset: read within a limit of time, measured, and compared."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any

from pipediag.capture.process import let_pass
from pipediag.capture.replay import NotReplayableError, first_line
from pipediag.session.edits import FAILS

_TOLERANCE = {"bfloat16": 2e-2, "float16": 2e-3, "float32": 1e-5, "float64": 1e-8}
"""Relative tolerance, and absolute one for values about 1: some units in the last place of each
type."""


def difference_of(
    expected: Sequence[Any], found: Sequence[Any], values: bool, *, padded: bool = False
) -> str | None:
    """Return the first difference between elements in the same places, or None.

    With `values`, shapes and values are compared, and not only structure, types and ranks. Zeros
    and empty strings at the end of `padded` ones, which are still to be padded so, don't count.
    """
    from tensorflow.python.util import nest

    for number, elements in enumerate(zip(expected, found, strict=False), 1):
        try:
            nest.assert_same_structure(*elements, expand_composites=True)
        except (TypeError, ValueError):
            return f"in number {number}, the structure is another one"
        olds, news = (nest.flatten(one, expand_composites=True) for one in elements)
        pairs = list(zip(olds, news, strict=True))
        for component, (old, new) in enumerate(starmap(_padded_alike, pairs) if padded else pairs):
            difference = _tensor_difference(old, new, values)
            if difference is not None:
                which = f"component {component} " if len(olds) > 1 else ""
                return f"in number {number}, {which}{difference}"
    return None


def _padded_alike(old: Any, new: Any) -> tuple[Any, Any]:
    """Return two tensors that have equal shapes, if zeros or empty strings can give them these."""
    from tensorflow.python.ops import array_ops

    if old.dtype != new.dtype or old.shape.rank != new.shape.rank or old.shape == new.shape:
        return old, new
    sizes = [max(both) for both in zip(old.shape, new.shape, strict=True)]
    filling = "" if old.dtype.name == "string" else 0

    def padded(tensor: Any) -> Any:
        more = [[0, size - own] for size, own in zip(sizes, tensor.shape, strict=True)]
        return array_ops.pad_v2(tensor, more, constant_values=filling)

    return padded(old), padded(new)


def _tensor_difference(old: Any, new: Any, values: bool) -> str | None:
    if old.dtype != new.dtype:
        return f"had the type {old.dtype.name} and has {new.dtype.name}"
    by_value = values and old.dtype.name not in ("variant", "resource")
    if old.shape.rank != new.shape.rank or (by_value and old.shape != new.shape):
        return f"had the shape {old.shape} and has {new.shape}"
    if not by_value:
        return None
    # TensorFlow has imported it; an import of ours could find a module of the script's.
    np = sys.modules["numpy"]
    if not (old.dtype.is_floating or old.dtype.is_complex):
        same = np.asarray(old.numpy() == new.numpy())
        return None if same.all() else f"differs in {np.size(same) - same.sum()} values"
    tolerance = _TOLERANCE.get(old.dtype.name, 1e-5)
    wide = np.complex128 if old.dtype.is_complex else np.float64
    a, b = old.numpy().astype(wide), new.numpy().astype(wide)
    if np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
        return None
    return f"differs by up to {np.nanmax(np.abs(a - b)):.3g}"


_MOST_BYTES = 64_000_000
"""Most bytes of elements that are held while they are compared: of large ones, few are."""


@dataclass
class Reading:
    """Elements that were read; `exhausted` if there were no more after them."""

    elements: list[Any] = field(default_factory=list)
    exhausted: bool = False


def first_elements(dataset: Any, count: int, seconds: float = float("inf")) -> Reading:
    """Return up to `count` elements, as many as come within the time, fewer where they are large.

    Their iterator is gone on return.
    """
    try:
        return _taken(dataset, count, time.monotonic() + seconds)
    except Exception as error:
        let_pass(error)
        failure = first_line(error)
    # Outside of the handler: the first error's frames would keep the iterator alive.
    raise NotReplayableError(f"{FAILS}: {failure}")


def _taken(dataset: Any, count: int, until: float) -> Reading:
    reading = Reading()
    iterator = unobserved(dataset)
    held = 0
    while len(reading.elements) < count and held < _MOST_BYTES and time.monotonic() < until:
        try:
            element = next(iterator)
        except StopIteration:
            reading.exhausted = True
            break
        reading.elements.append(element)
        held += tensor_bytes(element)
    return reading


def unobserved(dataset: Any) -> Iterator[Any]:
    """Return an iterator over the dataset that hooks do not take for the script's."""
    from tensorflow.python.data.ops import dataset_ops, iterator_ops

    # The hooks recognise it by this class.
    own = dataset_ops._RestructuredDataset(dataset, dataset.element_spec)
    return iter(iterator_ops.OwnedIterator(own))


def dataset_of(elements: Sequence[Any], element_spec: Any) -> Any:
    """Return a dataset that hands out these elements, in this order, on every pass."""
    from tensorflow.python.data.ops import dataset_ops

    first, *others = [dataset_ops.DatasetV2.from_tensors(element) for element in elements]
    for other in others:
        first = first.concatenate(other)
    return dataset_ops._RestructuredDataset(first, element_spec)


def tensor_bytes(element: Any) -> int:
    """Return the bytes of the tensors in an element; of strings, those of their characters."""
    from tensorflow.python.util import nest

    np, total = sys.modules["numpy"], 0
    for tensor in nest.flatten(element, expand_composites=True):
        if tensor.dtype.name not in ("variant", "resource"):
            array = np.asarray(tensor.numpy())
            texts = array.dtype == object
            total += sum(map(len, array.ravel())) if texts else int(array.nbytes)
    return total
