"""Loops that a tf.function runs by itself: one Python call covers many steps, or a whole epoch.

No Python runs between its steps, so hooks put a counter into its body, and a thread reads that
while the call runs. Step times are therefore averages over short intervals.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pipediag.capture.guard import Guard
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.measuring.instruments import Instruments
from pipediag.capture.pipelines.calls import user_site
from pipediag.capture.runtime import Cancellation, Counter, Keeper, Runtime
from pipediag.capture.threads import EachThread
from pipediag.capture.watching.in_graph_measure import INTERVAL_S, InGraphMeasure
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.messages import LoopFound

_MOST_KEPT = 8
"""Loops whose batches are kept at a time. Own choice: a function has one or two, traced twice."""


@dataclass(eq=False)
class InGraphCall:
    """A call of a tf.function that may turn out to loop."""

    function: Any
    argument: Any
    """The dataset or iterator that it was given: inside the function that is another object."""
    cancellation: Cancellation
    over: threading.Event = field(default_factory=threading.Event)
    watcher: threading.Thread | None = None


@dataclass(eq=False)
class _Calls:
    """Calls of one thread."""

    current: InGraphCall | None = None


class InGraphLoops:
    """Counts the steps of in-graph loops, measures those that train, and can cancel a call."""

    def __init__(
        self,
        loops: LoopRegistry,
        updates: UpdateWatch,
        instruments: Instruments,
        guard: Guard,
        stop_after: bool,
    ) -> None:
        self._loops = loops
        self._updates = updates
        self._with = instruments
        self._stop_after = stop_after
        # By the function itself: an id would be used again for another one.
        self._measure_of: weakref.WeakKeyDictionary[Any, InGraphMeasure] = (
            weakref.WeakKeyDictionary()
        )
        self._any_measured = False
        """Asked first, on every step: a weak dictionary answers in Python code."""
        self._measures: list[InGraphMeasure] = []
        self._keeping: list[tuple[InGraphMeasure, Keeper]] = []
        """Oldest first."""
        self._calls = EachThread(_Calls)
        self._watch = guard.entry("watching a loop inside a tf.function", self._watch_call)

    def found(
        self, dataset: Any, runtime: Runtime, new_counter: Callable[[], Counter]
    ) -> InGraphMeasure | None:
        """A loop over this is in the function that is being traced; returns what measures it.

        None outside of a function. The counter is made where the function has none yet.
        """
        function = self._updates.outermost
        if function is None:
            return None
        measure = self._measure_of.get(function)
        if measure is None:
            call = self._calls.here.current
            given = call.argument if call is not None else None
            known = given if given is not None else dataset
            loop = self._loops.new_in_graph_loop(known, user_site(), runtime)
            measure = InGraphMeasure(loop, new_counter(), self._with)
            loop.step_functions.append(weakref.ref(function))
            self._measure_of[function] = measure
            self._any_measured = True
            self._measures.append(measure)
            self._with.timeline.steps_begin(loop.record.id, time.monotonic_ns(), None)
        return measure

    def keeps(self, measure: InGraphMeasure, keeper: Keeper) -> None:
        """A loop that is traced now keeps its batches; others let theirs go where their function is
        gone, whose tables nobody can read any more, or where they are too many."""
        measure.keepers = [*measure.keepers, keeper]
        self._keeping.append((measure, keeper))
        alive = set(self._measure_of.values())
        many = len(self._keeping) - _MOST_KEPT
        for place, (one, kept) in enumerate(self._keeping):
            if kept in one.keepers and (place < many or one not in alive):
                one.let_go_of(kept)
        self._keeping = [(one, kept) for one, kept in self._keeping if kept in one.keepers]

    @property
    def enough(self) -> bool:
        """Return True if the script may be stopped, as an in-graph loop was measured."""
        return self._stop_after and any(measure.done for measure in self._measures)

    def runs(self, function: Any) -> bool:
        """Return True if the function is known to loop by itself."""
        return self._any_measured and function in self._measure_of

    def call_begins(self, function: Any, argument: Any, cancellation: Cancellation) -> InGraphCall:
        """A function is called, with that dataset or iterator if any, and may turn out to loop."""
        call = InGraphCall(function, argument, cancellation)
        measure = self._measure_of.get(function)
        if measure is not None:
            measure.call_begins()
        self._calls.here.current = call
        call.watcher = threading.Thread(
            target=self._watch, args=(call,), name="pipediag-in-graph", daemon=True
        )
        call.watcher.start()
        return call

    def call_ended(self, call: InGraphCall) -> None:
        """Note that the call has returned or raised."""
        call.over.set()
        if call.watcher is not None:
            call.watcher.join()
        self._calls.here.current = None
        measure = self._measure_of.get(call.function)
        if measure is not None:
            measure.call_ended()

    def _watch_call(self, call: InGraphCall) -> None:
        while not call.over.wait(INTERVAL_S):
            measure = self._measure_of.get(call.function)
            if measure is None:
                continue
            record = measure.loop.record
            if self._updates.trains(call.function) and record.role == "other":
                record.role, record.role_reason = "training", "its steps write trainable variables"
                record.updates_variables = True
                self._with.tell(LoopFound(record.line))
            if not measure.loop.trains:
                continue
            measure.poll()
            if measure.done and self._stop_after:
                if call.cancellation.lack is not None:
                    self._with.recorder.note(call.cancellation.lack)
                    return
                call.cancellation.start()
                return

    def given_up(self) -> None:
        """An error of ours: nothing more is measured, and no call is watched."""
        for calls in self._calls.all():
            if calls.current is not None:
                calls.current.over.set()
        self.finish("pipediag stopped after an error of its own")

    def finish(self, reason: str) -> None:
        """Close what is open."""
        for measure in self._measures:
            measure.finish(reason)
