"""Iterators and calls of tf.functions: which are the script's, and each step that they make."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pipediag.capture.callsites import place_of
from pipediag.capture.frameworks.tensorflow.tables.step_graph import arguments_of
from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Consumer, ScriptsOwnError, is_end_of_data
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
        self._known: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        """Iterators that carry our mark, in a program that goes on without us, by their ids."""
        self._guard.when("dismissed", self._forget_all)
        self._distributing = _Distributing()
        self._classes: tuple[type, ...] = ()
        self._owned: Any = ()
        """The class of tf.data's own among them."""
        self._executing_eagerly: Callable[[], bool] = bool

    def install_owned(self, module: Any) -> None:
        """Hook onto the iterators of `for batch in dataset` and `iter(dataset)`."""
        guard, owned = self._guard, module.OwnedIterator
        create = owned._create_iterator
        made = guard.entry("watching iterators", self._iterator_made, vital=True)
        from tensorflow.python.eager import context

        def create_iterator(iterator: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
            began_ns = time.monotonic_ns()
            create(iterator, dataset, *args, **kwargs)
            made(iterator, dataset, began_ns)

        self._executing_eagerly = context.executing_eagerly
        self._with.runtime.pull = owned._next_internal
        self._owned = owned
        guard.replace(owned, "_create_iterator", guard.hook(create, create_iterator))
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
        guard.replace(owner, method, guard.hook(getattr(owner, method), get_next))

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
        if not self._with.came_late or not isinstance(iterator, self._owned):
            return None
        dataset, consumer = iterator._dataset, None
        if dataset is not None and self._executing_eagerly() and _is_observed(dataset):
            consumer = self._steps.iterator_made(iterator, dataset)
        self._mark(iterator, consumer)
        return consumer

    def _mark(self, iterator: Any, consumer: Consumer | None) -> None:
        iterator.__dict__[_CONSUMER] = consumer
        if self._with.came_late:
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
        if is_end_of_data(error):
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

            guard.replace(dataset_class, "__iter__", guard.hook(original, iterate))

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
    halves = ("_PerDeviceGenerator", "_ReincarnatedPerDeviceGenerator", "_RestructuredDataset")
    return type(dataset).__name__ not in halves


@dataclass(eq=False, slots=True)
class _Visit:
    function: Any
    args: tuple[Any, ...]
    """Its arguments: a step of a trial is given another iterator."""
    traced_before: int
    began_ns: int
    consumer: Consumer | None = None
    iterator: Any = None
    given: Any = None
    """The iterator in the place of the script's."""
    error: Exception | None = None
    """The error that it would raise, as its data have failed."""


class FunctionCalls:
    """Hooks onto calls of tf.functions from the script's own level."""

    def __init__(
        self,
        watchers: Watchers,
        consumer_among: Callable[[tuple[Any, ...]], tuple[Consumer | None, Any]],
    ) -> None:
        self._with = watchers
        self._steps = watchers.steps
        self._updates = watchers.updates
        self._streak = watchers.steps.streak
        self._consumer_among = consumer_among

    def install(self, polymorphic_function: Any, guard: Guard) -> None:
        what = "watching calls of tf.functions"
        begins = guard.entry(what, self._begins, vital=True)
        failed = guard.entry(what, self._failed, vital=True)
        ended = guard.entry(what, self._ended, vital=True)
        original = polymorphic_function.Function.__call__
        short = "noting short steps"
        in_a_streak = guard.entry(short, self._streak.called, lambda *_: False, vital=True)
        streak_failed = guard.entry(short, self._streak_failed, vital=True)
        returned = guard.entry(short, self._returned, vital=True)

        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            if in_a_streak(function, args):
                try:
                    return original(function, *args, **kwargs)
                except Exception as error:
                    streak_failed(args, error)
                    raise
                finally:
                    returned(function)
            visit = begins(function, args, kwargs)
            if visit is None:
                return original(function, *args, **kwargs)
            try:
                if visit.error is not None:
                    raise visit.error
                return original(function, *visit.args, **kwargs)
            except Exception as error:
                instead = failed(visit, error)
                if instead is None:
                    raise
                return original(function, *instead, **kwargs)
            finally:
                ended(visit)

        guard.replace(polymorphic_function.Function, "__call__", guard.hook(original, call))

    def _begins(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _Visit | None:
        """Note a call; return None for one inside another call, or by tf.data for its pipeline."""
        if self._updates.busy:
            return None
        traced_before = function.experimental_get_tracing_count()
        visit = _Visit(function, args, traced_before, time.monotonic_ns())
        if not self._updates.loops_itself(function):
            self._give_iterator(visit)
            if visit.consumer is None and self._updates.trains(function):
                self._steps.fed_step(function, (args, kwargs))
        if visit.consumer is None and self._steps.choice.reads_batches:
            self._steps.function_called(function, args, kwargs)
        self._updates.enter(function)
        return visit

    def _give_iterator(self, visit: _Visit) -> None:
        visit.consumer, own = self._consumer_among(visit.args)
        if visit.consumer is None:
            return
        visit.iterator = visit.given = own
        try:
            visit.given = self._steps.call_begins(visit.consumer, own, visit.function)
        except ScriptsOwnError as failed:
            visit.error = failed.error
        if visit.given is not own:
            visit.args = tuple(visit.given if a is own else a for a in visit.args)

    def _failed(self, visit: _Visit, error: Exception) -> tuple[Any, ...] | None:
        """Return the arguments to call it with once more, where a trial was to blame."""
        if visit.consumer is None:
            return None
        if self._with.held.failed(visit.consumer, error):
            fallback = visit.consumer.asked(visit.iterator)
            return tuple(fallback if a is visit.given else a for a in visit.args)
        if is_end_of_data(error):
            self._steps.exhausted(visit.consumer)
        return None

    def _ended(self, visit: _Visit) -> None:
        self._updates.leave()
        if self._updates.loops_itself(visit.function):
            self._updates.here.looped = True
        count = visit.function.experimental_get_tracing_count()
        if count == visit.traced_before:
            self._streak.follows(visit.function, count, self._updates.here.functions)
        else:
            self._traced(visit.function, visit.began_ns, again=visit.traced_before > 0)

    def _streak_failed(self, args: tuple[Any, ...], error: Exception) -> None:
        consumer, _ = self._consumer_among(args)
        if consumer is not None and is_end_of_data(error):
            self._steps.exhausted(consumer)

    def _returned(self, function: Any) -> None:
        if self._streak.returned(function):
            self._traced(function, self._streak.called_ns, again=True)

    def _traced(self, function: Any, began_ns: int, *, again: bool) -> None:
        if not self._updates.loops_itself(function):
            self._with.recorder.attempt("timing first calls", self._first_call, function, began_ns)
        differ = again and _lengths_differ(function)
        self._steps.function_traced(function, again=again, lengths_differ=differ)

    def _first_call(self, function: Any, began_ns: int) -> None:
        name, site = place_of(function)
        self._with.timeline.passed("first_call", began_ns, time.monotonic_ns(), name, site)


def _lengths_differ(function: Any) -> bool:
    """Return True if two of its traces differ in lengths; False where they can't be read."""
    try:
        traced = [arguments_of(one.graph) for one in function._list_all_concrete_functions()]
        kinds = [[(one.dtype, one.shape.rank) for one in each] for each in traced]
        lengths = [[one.shape[1:].as_list() for one in each if one.shape.rank] for each in traced]
    except Exception:
        return False
    following = pairwise(zip(kinds, lengths, strict=True))
    return any(kind == other and one != two for (kind, one), (other, two) in following)
