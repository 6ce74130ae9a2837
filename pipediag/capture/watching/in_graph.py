"""Loops that a tf.function runs by itself: one Python call covers many steps, or a whole epoch.

No Python runs between its steps, so hooks put a counter into its body, and a thread reads that
while the call runs. Step times are therefore averages over short intervals.
"""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Loop
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.measuring.embeddings import Embeddings
from pipediag.capture.measuring.windows import Instruments, Window
from pipediag.capture.pipelines.calls import user_site
from pipediag.capture.runtime import Cancellation, Counter
from pipediag.capture.watching.updates import UpdateWatch, learn_role
from pipediag.session.messages import LoopFound, LoopMeasured, WindowBegun
from pipediag.vocabulary import WindowKind

INTERVAL_S = 0.2
"""Own choice: seldom enough to cost nothing, and often enough for a window of a few seconds."""

_FEWEST_INTERVALS = 5
_NO_IDS = "The ids of a loop inside a tf.function are not read."


class InGraphMeasure:
    """Measures the steps of a loop by its counter, in one window after the other."""

    def __init__(self, loop: Loop, counter: Counter, instruments: Instruments) -> None:
        self.loop = loop
        self.counter = counter
        self._with = instruments
        self._began: tuple[int, int] | None = None
        self._last: tuple[int, int] | None = None
        self._recent: list[int] = []
        self._steps_in_window = 0
        self._window = Window("warmup", loop, instruments)
        self.done = False

    def poll(self) -> None:
        """Read the counter while the call runs."""
        now, count = time.monotonic_ns(), self.counter.read()
        self.loop.record.steps = count
        last = self._last
        if last is not None and count == last[1]:
            return
        self._last = (now, count)
        if last is None or self.done:
            return
        steps = count - last[1]
        average = (now - last[0]) // steps
        self.loop.record.elapsed_ns += now - last[0]
        self._steps_in_window += steps
        self._window.add(last[0], average, None)
        self._window.close_block()
        self._recent.extend([average] * steps)
        self._advance(now)

    def call_begins(self) -> None:
        """Remember where the call began, for calls that end before the first reading."""
        self._began = (time.monotonic_ns(), self.counter.read())
        self._with.timeline.steps_begin(self.loop.record.id, self._began[0], None)

    def call_ended(self) -> None:
        """Take what the call did since the last reading; between two calls there are no steps.

        The first interval of a longer call is left out: the pipeline starts up in it.
        """
        self._with.timeline.steps_ended(time.monotonic_ns())
        self._last = self._last or self._began
        if self.loop.trains and self._last is not None:
            self.poll()
        self._last = self._began = None
        self.loop.record.boundaries += 1
        self.loop.record.steps = self.counter.read()

    def finish(self, reason: str | None, *, complete: bool = False) -> None:
        """Close what is open, for that reason, and record the tables of the traced step."""
        if self.done:
            return
        if self._window.record.kind == "profile":
            self._with.profiler.stop()
        self._window.close(complete=complete, reason=reason)
        if self.loop.trains:
            Embeddings(self.loop, self._with).end(_NO_IDS)
        self.done = True

    def _advance(self, now: int) -> None:
        pace, elapsed, record = (
            self._with.pace,
            now - self._window.record.start_ns,
            self._window.record,
        )
        if record.kind == "warmup":
            warm, settled = pace.warmed_up(self._recent, elapsed, None)
            if warm:
                record.stable = settled
                self._next("baseline")
        elif record.kind == "baseline" and self._window.count < _FEWEST_INTERVALS:
            return
        elif record.kind == "baseline" and pace.baseline_done(self._steps_in_window, elapsed, None):
            refused = pace.no_profile or self._with.profiler.start(self.loop.record.id)
            self._next("profile")
            if refused is not None:
                self._end(refused, complete=False)
        elif record.kind == "profile" and pace.enough(
            "profile", self._steps_in_window, elapsed, None
        ):
            failed = self._with.profiler.stop()
            if failed is None:
                record.trace_directory = str(self._with.profiler.directory)
            self._end(None, complete=failed is None)

    def _next(self, kind: WindowKind) -> None:
        self._window.close(complete=True)
        self._with.recorder.save()
        self._with.tell(WindowBegun(kind))
        self._window = Window(kind, self.loop, self._with)
        self._steps_in_window = 0
        # Neither this interval nor what the call did before belongs to the new window.
        self._last = self._began = None

    def _end(self, reason: str | None, *, complete: bool) -> None:
        self.finish(reason, complete=complete)
        self._with.recorder.note(
            "The loop runs inside a tf.function: step times are averages over intervals of "
            f"{INTERVAL_S:g} s, and tf.data gives no gap times for it."
        )
        self._with.recorder.save()
        self._with.tell(LoopMeasured(self.loop.record.line))


@dataclass(eq=False)
class InGraphCall:
    """A call of a tf.function that may turn out to loop."""

    function: Any
    argument: Any
    """The dataset or iterator that it was given: inside the function that is another object."""
    cancellation: Cancellation
    over: threading.Event = field(default_factory=threading.Event)
    watcher: threading.Thread | None = None


class InGraphLoops:
    """Counts the steps of in-graph loops, measures those that train, and can cancel a call."""

    def __init__(
        self, loops: LoopRegistry, updates: UpdateWatch, instruments: Instruments, guard: Guard
    ) -> None:
        settings = instruments.pace.settings
        self._loops, self._updates, self._with = loops, updates, instruments
        self._stop_after = not (settings.run_to_end or settings.hold_loop or settings.loop)
        # By the function itself: an id would be used again for another one.
        self._measure_of: weakref.WeakKeyDictionary[Any, InGraphMeasure] = (
            weakref.WeakKeyDictionary()
        )
        self._measures: list[InGraphMeasure] = []
        self._calls: dict[int, InGraphCall] = {}
        """The call that each thread makes."""
        self._watch = guard.entry("watching a loop inside a tf.function", self._watch_call)

    def found(self, dataset: Any) -> InGraphMeasure | None:
        """Return the measure of the loop in the function that is being traced; None outside of
        one."""
        functions = self._updates.here.functions
        if not functions:
            return None
        function = functions[0]
        measure = self._measure_of.get(function)
        if measure is None:
            call = self._calls.get(get_ident())
            given = call.argument if call is not None else None
            known = given if given is not None else dataset
            loop = self._loops.new_in_graph_loop(known, user_site())
            measure = InGraphMeasure(loop, loop.runtime.counter(), self._with)
            loop.step_functions.append(weakref.ref(function))
            self._measure_of[function] = measure
            self._measures.append(measure)
            self._with.timeline.steps_begin(loop.record.id, time.monotonic_ns(), None)
        return measure

    @property
    def enough(self) -> bool:
        """Return True if the script may be stopped, as an in-graph loop was measured."""
        return self._stop_after and any(measure.done for measure in self._measures)

    def runs(self, function: Any) -> bool:
        """Return True if the function is known to loop by itself."""
        # In this order, on every step: a weak dictionary answers in Python code.
        return bool(self._measures) and function in self._measure_of

    def call_begins(self, function: Any, argument: Any, cancellation: Cancellation) -> InGraphCall:
        call = InGraphCall(function, argument, cancellation)
        measure = self._measure_of.get(function)
        if measure is not None:
            measure.call_begins()
        self._calls[get_ident()] = call
        call.watcher = threading.Thread(
            target=self._watch, args=(call,), name="pipediag-in-graph", daemon=True
        )
        call.watcher.start()
        return call

    def call_ended(self, call: InGraphCall) -> None:
        call.over.set()
        if call.watcher is not None:
            call.watcher.join()
        self._calls.pop(get_ident(), None)
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
                learn_role(record)
                self._with.tell(LoopFound(record.line))
            if not measure.loop.trains:
                continue
            measure.poll()
            if measure.done and self._stop_after:
                if call.cancellation.lack is not None:
                    self._with.recorder.note(call.cancellation.lack)
                else:
                    call.cancellation.start()
                return

    def given_up(self) -> None:
        """Measure nothing more and watch no call, after an error of ours."""
        for call in list(self._calls.values()):
            call.over.set()
        self.finish("pipediag stopped after an error of its own")

    def finish(self, reason: str) -> None:
        for measure in self._measures:
            measure.finish(reason)
