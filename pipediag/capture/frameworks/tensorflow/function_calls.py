"""Calls of tf.functions from the script's own level: steps given an iterator, traces, loops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pipediag.capture.callsites import place_of
from pipediag.capture.frameworks.tensorflow.tables.step_graph import arguments_of
from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Consumer, ScriptsOwnError
from pipediag.capture.watching.step_clock import Watchers


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
        self._errors: Any = None

    def install(self, polymorphic_function: Any, guard: Guard) -> None:
        self._errors = polymorphic_function.errors
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

        polymorphic_function.Function.__call__ = guard.hook(original, call)

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
                self._steps.fed_step(function)
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
        if isinstance(error, self._errors.OutOfRangeError):
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
        if consumer is not None and isinstance(error, self._errors.OutOfRangeError):
            self._steps.exhausted(consumer)

    def _returned(self, function: Any) -> None:
        if self._streak.returned(function):
            self._traced(function, self._streak.called_ns, again=True)

    def _traced(self, function: Any, began_ns: int, *, again: bool) -> None:
        if not self._updates.loops_itself(function):
            self._with.guard.attempt("timing first calls", self._first_call, function, began_ns)
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
