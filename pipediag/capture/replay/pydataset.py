"""A Keras PyDataset behind the generator that Keras makes of it, and the same read by workers."""

from __future__ import annotations

import inspect
import random
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import count
from types import MethodType
from typing import Any

from pipediag.capture.packages import KERAS, package_of_module
from pipediag.capture.pipelines.functions import users_side_effect
from pipediag.capture.replay.graph import Node
from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.vocabulary import Scalar

_ADAPTER = "PyDatasetAdapter"
_QUEUE = 10
"""Keras's own `max_queue_size`."""
_LEAVE_S = 5.0
"""Own choice: a call that takes longer is left to itself, as it only reads."""


def adapter_of(generator: Any) -> Any:
    """Keras's adapter whose generator this is, with the script's PyDataset in it; None for any
    other generator."""
    owner = getattr(generator, "__self__", None)
    kind = type(owner)
    ours = kind.__name__ == _ADAPTER and package_of_module(kind.__module__) in KERAS
    return owner if ours else None


def reading_functions(adapter: Any) -> Iterator[Callable[..., Any]]:
    """What is called of the script's PyDataset to read its batches."""
    source = adapter.py_dataset
    yield source.__getitem__
    if hasattr(type(source), "__len__"):
        yield source.__len__
    batches = inspect.getattr_static(type(source), "num_batches", None)
    if isinstance(batches, property) and batches.fget is not None:
        yield MethodType(batches.fget, source)


def read_by_workers(node: Node, parameters: dict[str, Scalar], _inputs: list[Any]) -> Any:
    """The batches of the same object, made by threads, as `fit` has them with its `workers`.

    Processes are not started: they would copy a process in the middle of its work.

    Raises:
        NotReplayableError: it is no PyDataset, or calls of it would get in each other's way.
    """
    adapter = adapter_of(node.call.generator if node.call else None)
    if adapter is None:
        raise NotReplayableError("The batches don't come from a PyDataset of Keras 3.")
    changed = users_side_effect(adapter.py_dataset.__getitem__)
    if changed is not None:
        raise NotReplayableError(
            f"Its `__getitem__` can't be called from several threads at once: {changed}."
        )
    workers, queued = parameters["workers"], parameters.get("max_queue_size", _QUEUE)
    assert isinstance(workers, int)
    assert isinstance(queued, int)

    def batches() -> Iterator[Any]:
        made = _made_ahead(adapter.py_dataset.__getitem__, _indices(adapter), workers, queued)
        try:
            for batch in made:
                yield adapter._standardize_batch(batch)
        finally:
            made.close()

    from tensorflow.python.data.ops import dataset_ops

    return dataset_ops.DatasetV2.from_generator(batches, output_signature=node.dataset.element_spec)


def _indices(adapter: Any) -> Iterable[int]:
    """In the order of one of its epochs; the script's random numbers are left alone."""
    batches = adapter.py_dataset.num_batches
    if batches is None:
        return count()
    indices = list(range(batches))
    if adapter.shuffle:
        random.Random(len(indices)).shuffle(indices)
    return indices


def _made_ahead(
    make: Callable[[int], Any], indices: Iterable[int], workers: int, queued: int
) -> Generator[Any, None, None]:
    """Results in the order of the indices, of which so many are asked for ahead."""
    asked: deque[Future[Any]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        for index in indices:
            asked.append(pool.submit(make, index))
            if len(asked) > queued:
                yield asked.popleft().result()
        while asked:
            yield asked.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        # What still runs would take its time from the pipeline that is measured next.
        wait([one for one in asked if not one.cancelled()], timeout=_LEAVE_S)
