"""Elements of a dataset, read for a check; no iterator outlives the reading."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipediag.capture.replay.refusal import NotReplayableError, first_line
from pipediag.capture.signal_handlers import let_pass

_MOST_BYTES = 64_000_000
"""Elements are held while they are compared; large ones are few."""


class UnreadableError(NotReplayableError):
    """The pipeline failed while elements were read."""


@dataclass
class Reading:
    """The elements that were read, and whether there were no more after them."""

    elements: list[Any] = field(default_factory=list)
    exhausted: bool = False


def first_elements(dataset: Any, count: int, seconds: float = float("inf")) -> Reading:
    """Up to `count` elements, fewer where they are large, from an iterator gone on return.

    Args:
        dataset: what to read from.
        count: elements at most.
        seconds: time after which no further element is asked for.

    Raises:
        UnreadableError: the pipeline failed.
    """
    try:
        return _taken(dataset, count, time.monotonic() + seconds)
    except Exception as error:
        let_pass(error)
        failure = first_line(error)
    # Outside of the handler: the first error's frames would keep the iterator alive.
    raise UnreadableError(f"The pipeline fails in a check: {failure}")


def _taken(dataset: Any, count: int, until: float) -> Reading:
    reading = Reading()
    iterator = _iterate(dataset)
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


def _iterate(dataset: Any) -> Iterator[Any]:
    from tensorflow.python.data.ops import dataset_ops, iterator_ops

    # By this class the hooks on iterators know what is no loop of the script's.
    own = dataset_ops._RestructuredDataset(dataset, dataset.element_spec)
    return iter(iterator_ops.OwnedIterator(own))


def read_through(dataset: Any) -> None:
    """Have every element made once, and keep none."""
    from tensorflow.python.framework import constant_op, dtypes

    dataset.reduce(constant_op.constant(0, dtypes.int64), lambda count, *_: count + 1)


def dataset_of(elements: Sequence[Any], element_spec: Any) -> Any:
    """A dataset that hands out these elements, in this order, on every pass."""
    from tensorflow.python.data.ops import dataset_ops

    first, *others = [dataset_ops.DatasetV2.from_tensors(element) for element in elements]
    for other in others:
        first = first.concatenate(other)
    return dataset_ops._RestructuredDataset(first, element_spec)


def tensor_bytes(element: Any) -> int:
    """Bytes of the tensors in an element; of strings, the bytes of their characters."""
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
