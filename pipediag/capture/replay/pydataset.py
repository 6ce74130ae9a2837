"""A Keras PyDataset behind the generator that Keras makes of it, and the same read by workers."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from pipediag.capture.callsites import KERAS, package_of_module
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


class _Call:
    """One batch that a worker makes."""

    def __init__(self, make: Callable[[int], Any], index: int) -> None:
        self._make = make
        self._index = index
        self._over = threading.Event()
        self._batch: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._batch = self._make(self._index)
        except BaseException as error:
            self._error = error
        self._over.set()

    def result(self) -> Any:
        """What came of it; waits until something did."""
        self._over.wait()
        if self._error is not None:
            raise self._error
        return self._batch


def _made_ahead(
    make: Callable[[int], Any], indices: Iterable[int], workers: int, queued: int
) -> Generator[Any, None, None]:
    """Results in the order of the indices, of which so many are asked for ahead."""
    calls: SimpleQueue[_Call | None] = SimpleQueue()
    asked: deque[_Call] = deque()
    threads = [
        threading.Thread(target=_work, args=(calls,), name="pipediag-worker", daemon=True)
        for _ in range(workers)
    ]
    for thread in threads:
        thread.start()
    try:
        for index in indices:
            asked.append(_Call(make, index))
            calls.put(asked[-1])
            if len(asked) > queued:
                yield asked.popleft().result()
        while asked:
            yield asked.popleft().result()
    finally:
        _leave(calls, threads)


def _work(calls: SimpleQueue[_Call | None]) -> None:
    while (call := calls.get()) is not None:
        call.run()


def _leave(calls: SimpleQueue[_Call | None], threads: list[threading.Thread]) -> None:
    """What nobody began is not begun; what still runs would take its time from the pipeline that is
    measured next."""
    with suppress(Empty):
        while True:
            calls.get_nowait()
    for _ in threads:
        calls.put(None)
    until = time.monotonic() + _LEAVE_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
