"""The first elements of a dataset: read within a limit of time, measured, and compared."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pipediag.capture.replay.refusal import NotReplayableError, first_line
from pipediag.capture.signals import let_pass

T = TypeVar("T")

_TOLERANCE = {"bfloat16": 2e-2, "float16": 2e-3, "float32": 1e-5, "float64": 1e-8}
"""Relative, and absolute for values about 1: some units in the last place of each type."""


def spec_difference(before: Any, after: Any) -> str | None:
    """Return what no consumer would bear: another structure, type or rank, if any."""
    from tensorflow.python.data.util import nest

    try:
        nest.assert_same_structure(before, after)
        pairs = list(zip(nest.flatten(before), nest.flatten(after), strict=True))
    except (TypeError, ValueError):
        pairs = [(before, after)]
    for old, new in pairs:
        types = [(type(one), getattr(one, "dtype", None)) for one in (old, new)]
        shapes = [getattr(one, "shape", None) for one in (old, new)]
        if types[0] != types[1] or not _shapes_agree(*shapes):
            return f"a component was {_short(old)} and is {_short(new)}"
    return None


def _shapes_agree(old: Any, new: Any) -> bool:
    if old is None or new is None or old.rank is None or new.rank is None:
        return True
    return bool(old.rank == new.rank and old[1:].is_compatible_with(new[1:]))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def difference_of(expected: Sequence[Any], found: Sequence[Any], values: bool) -> str | None:
    """Return the first difference between elements in the same places, or None.

    With `values`, shapes and values are compared, and not only structure, types and ranks.
    """
    for number, (old, new) in enumerate(zip(expected, found, strict=False), 1):
        difference = _element_difference(old, new, values)
        if difference is not None:
            return f"in number {number}, {difference}"
    return None


def _element_difference(old: Any, new: Any, values: bool) -> str | None:
    from tensorflow.python.util import nest

    try:
        nest.assert_same_structure(old, new, expand_composites=True)
    except (TypeError, ValueError):
        return "the structure is another one"
    olds, news = (nest.flatten(one, expand_composites=True) for one in (old, new))
    differences = (_tensor_difference(a, b, values) for a, b in zip(olds, news, strict=True))
    for component, difference in enumerate(differences):
        if difference is not None:
            return f"component {component} {difference}" if len(olds) > 1 else difference
    return None


def _tensor_difference(old: Any, new: Any, values: bool) -> str | None:
    if old.dtype != new.dtype:
        return f"had the type {old.dtype.name} and has {new.dtype.name}"
    by_value = values and old.dtype.name not in ("variant", "resource")
    if old.shape.rank != new.shape.rank or (by_value and old.shape != new.shape):
        return f"had the shape {old.shape} and has {new.shape}"
    return _value_difference(old, new) if by_value else None


def _value_difference(old: Any, new: Any) -> str | None:
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
"""Elements are held while they are compared; large ones are few."""


@dataclass
class Reading:
    """Elements that were read; `exhausted` if there were no more after them."""

    elements: list[Any] = field(default_factory=list)
    exhausted: bool = False


def first_elements(dataset: Any, count: int, seconds: float = float("inf")) -> Reading:
    """Return up to `count` elements, as many as come within the time, fewer where they are large.

    Their iterator is gone on return.
    """
    return _checked(_taken, dataset, count, seconds)


def compared_passes(dataset: Any, count: int, seconds: float) -> tuple[int, str | None]:
    """Compare two passes over a dataset; return the elements compared, and the first difference."""
    return _checked(_compared, dataset, count, seconds)


def _checked(read: Callable[[Any, int, float], T], dataset: Any, count: int, seconds: float) -> T:
    try:
        return read(dataset, count, time.monotonic() + seconds)
    except Exception as error:
        let_pass(error)
        failure = first_line(error)
    # Outside of the handler: the first error's frames would keep the iterator alive.
    raise NotReplayableError(f"The pipeline fails in a check: {failure}")


def _compared(dataset: Any, count: int, until: float) -> tuple[int, str | None]:
    passes = unobserved(dataset), unobserved(dataset)
    compared = 0
    while compared < count and time.monotonic() < until:
        first, second = (next(each, None) for each in passes)
        if first is None or second is None:
            ended = first is None and second is None
            return compared, None if ended else "one of them ends sooner"
        difference = difference_of([first], [second], values=True)
        if difference is not None:
            return compared, difference.replace("in number 1", f"in element {compared + 1}")
        compared += 1
    return compared, None


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

    # By this class they know it.
    own = dataset_ops._RestructuredDataset(dataset, dataset.element_spec)
    return iter(iterator_ops.OwnedIterator(own))


def read_through(dataset: Any) -> None:
    """Have every element made once, and keep none."""
    from tensorflow.python.framework import constant_op, dtypes

    dataset.reduce(constant_op.constant(0, dtypes.int64), lambda count, *_: count + 1)


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

    total = 0
    for tensor in nest.flatten(element, expand_composites=True):
        if tensor.dtype.name in ("variant", "resource"):
            continue
        array = tensor.numpy()
        if isinstance(array, bytes):
            total += len(array)
        elif array.dtype == object:
            total += sum(len(text) for text in array.ravel())
        else:
            total += int(array.nbytes)
    return total
