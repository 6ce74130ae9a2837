"""Iterators: which are the script's, and each batch that they hand over."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from pipediag.capture.loops.loop import Consumer
from pipediag.capture.watching.step_clock import Watchers

_CONSUMER = "_pipediag_consumer"
_UNKNOWN = object()


class _Distributing(threading.local):
    """A thread that is inside a distributed iterator, which asks others for its batches."""

    inside = False


class Iterators:
    def __init__(self, watchers: Watchers) -> None:
        self._guard = watchers.guard
        self._steps = watchers.steps
        self._with = watchers
        self._came_late = watchers.came_late
        self._known: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        """Iterators that carry our mark, in a program that goes on without us, by their ids."""
        self._guard.when("dismissed", self._forget_all)
        self._distributing = _Distributing()
        self._classes: tuple[type, ...] = ()
        self._owned: Any = ()
        """The class of tf.data's own among them."""
        self._executing_eagerly: Callable[[], bool] = bool
        self._out_of_range: type[Exception] = StopIteration

    def install_owned(self, module: Any) -> None:
        """Hook onto the iterators of `for batch in dataset` and `iter(dataset)`."""
        guard, owned = self._guard, module.OwnedIterator
        create = owned._create_iterator
        made = guard.entry("watching iterators", self._iterator_made, vital=True)
        from tensorflow.python.eager import context
        from tensorflow.python.framework import errors

        def create_iterator(iterator: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
            began_ns = time.monotonic_ns()
            create(iterator, dataset, *args, **kwargs)
            made(iterator, dataset, began_ns)

        self._executing_eagerly = context.executing_eagerly
        self._out_of_range = errors.OutOfRangeError
        self._with.runtime.pull = owned._next_internal
        self._owned = owned
        owned._create_iterator = guard.hook(create, create_iterator)
        self._watch_next(owned, "_next_internal", owned._next_internal)

    def _watch_next(self, owner: Any, method: str, advance: Callable[..., Any]) -> None:
        """Hook onto the method by which a class of iterators hands over, as `advance` does."""
        guard, what = self._guard, "watching iterators"
        asked = guard.entry(what, self._consumer_that_asks, vital=True)
        failed = guard.entry(what, self._advance_failed, vital=True)
        handed_over = guard.entry(
            "counting the steps of loops",
            self._steps.handed_over,
            lambda _consumer, _asked_ns, _handed_ns, batch: batch,
            vital=True,
        )

        def get_next(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            consumer: Consumer | None = asked(iterator)
            if consumer is None:
                return advance(iterator, *args, **kwargs)
            asked_ns = time.monotonic_ns()
            try:
                batch = advance(consumer.asked(iterator), *args, **kwargs)
            except Exception as error:
                if not failed(consumer, error):
                    raise
                batch = advance(consumer.asked(iterator), *args, **kwargs)
            return handed_over(consumer, asked_ns, time.monotonic_ns(), batch)

        self._classes += (owner,)
        setattr(owner, method, guard.hook(getattr(owner, method), get_next))

    def _iterator_made(self, iterator: Any, dataset: Any, began_ns: int) -> None:
        made_ns = time.monotonic_ns()
        observed = self._executing_eagerly() and not self._distributing.inside
        if observed and _is_observed(dataset):
            consumer = self._steps.iterator_made(iterator, dataset)
            self._mark(iterator, consumer)
            if consumer is not None:
                self._with.timeline.passed("iterator", began_ns, made_ns, consumer.loop.record.id)

    def _consumer_that_asks(self, iterator: Any) -> Consumer | None:
        consumer = iterator.__dict__.get(_CONSUMER, _UNKNOWN)
        if consumer is None or self._distributing.inside or self._with.updates.here.functions:
            return None
        return self._from_before(iterator) if consumer is _UNKNOWN else consumer

    def _from_before(self, iterator: Any) -> Consumer | None:
        """Find the consumer of an iterator that the program may have made before we came."""
        if not self._came_late or not isinstance(iterator, self._owned):
            return None
        dataset, consumer = iterator._dataset, None
        if dataset is not None and self._executing_eagerly() and _is_observed(dataset):
            consumer = self._steps.iterator_made(iterator, dataset)
        self._mark(iterator, consumer)
        return consumer

    def _mark(self, iterator: Any, consumer: Consumer | None) -> None:
        iterator.__dict__[_CONSUMER] = consumer
        if self._came_late:
            self._known[id(iterator)] = iterator

    def _forget_all(self) -> None:
        """Leave no mark on iterators: another capture would take them for its own."""
        for iterator in list(self._known.values()):
            iterator.__dict__.pop(_CONSUMER, None)
        self._known.clear()

    def _advance_failed(self, consumer: Consumer, error: Exception) -> bool:
        """Return True if a trial was to blame, so that the script's own iterator is asked."""
        if self._with.held.failed(consumer, error):
            return True
        if isinstance(error, self._out_of_range):
            self._steps.exhausted(consumer)
        return False

    def install_distributed(self, module: Any) -> None:
        guard, distributing = self._guard, self._distributing
        made = guard.entry("watching iterators", self._distributed_made, vital=True)

        def within(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                distributing.inside = True
                try:
                    return original(*args, **kwargs)
                finally:
                    distributing.inside = False

            return call

        def watch_creation(dataset_class: Any) -> None:
            original = dataset_class.__iter__
            make = within(original)

            def iterate(dataset: Any) -> Any:
                iterator = make(dataset)
                made(iterator, dataset)
                return iterator

            dataset_class.__iter__ = guard.hook(original, iterate)

        watch_creation(module.DistributedDataset)
        watch_creation(module.DistributedDatasetsFromFunction)
        base = module.DistributedIteratorBase
        self._watch_next(base, "get_next", within(base.get_next))

    def _distributed_made(self, iterator: Any, dataset: Any) -> None:
        if self._executing_eagerly():
            consumer = self._steps.iterator_made(iterator, dataset, distributed=True)
            self._mark(iterator, consumer)

    def consumer_among(self, args: tuple[Any, ...]) -> tuple[Consumer | None, Any]:
        """Return the consumer of the first argument that is an iterator of ours, and that."""
        for argument in args:
            # By class first: a tensor has no dictionary until it is asked for one.
            if isinstance(argument, self._classes):
                consumer = argument.__dict__.get(_CONSUMER, _UNKNOWN)
                if consumer is _UNKNOWN:
                    consumer = self._from_before(argument)
                if consumer is not None:
                    return consumer, argument
        return None, None


def _is_observed(dataset: Any) -> bool:
    """Return False for the per-device halves of a distributed iterator and for our own datasets."""
    name = type(dataset).__name__
    return name not in (
        "_PerDeviceGenerator",
        "_ReincarnatedPerDeviceGenerator",
        "_RestructuredDataset",
    )
