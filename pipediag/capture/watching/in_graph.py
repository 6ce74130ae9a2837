"""Loops that a tf.function runs by itself: one Python call covers many steps, or a whole epoch.

AutoGraph turns `for batch in dataset` into graph operations, so that no Python runs between steps.
While the loop is traced we add a counter to its body, an assignment of about a microsecond that
leaves the input pipeline as it is; a thread reads it while the call runs. Step times are therefore
averages over short intervals.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pipediag.capture.frameworks.tensorflow.cancellation import Cancellation
from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Loop
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.measuring.instruments import Instruments
from pipediag.capture.measuring.open_window import OpenWindow
from pipediag.capture.pipelines.plan_recorder import user_site
from pipediag.capture.threads import EachThread
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.recording import WindowKind

_INTERVAL_S = 0.2
_FEWEST_INTERVALS = 5


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
    """What one thread calls."""

    current: InGraphCall | None = None


class InGraphLoops:
    """Counts the steps of in-graph loops, measures those that train, and can cancel a call."""

    def __init__(
        self,
        loops: LoopRegistry,
        updates: UpdateWatch,
        instruments: Instruments,
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
        self._measures: list[InGraphMeasure] = []
        self._calls = EachThread(_Calls)
        self._watch: Callable[[InGraphCall], None] = self._watch_call

    def install_datasets(self, dataset_autograph: Any, guard: Guard) -> None:
        """Count the steps of `for batch in dataset` inside a tf.function."""
        registry = dataset_autograph.control_flow.for_loop_registry
        dataset_class = dataset_autograph.dataset_ops.DatasetV2
        original = registry._registry[dataset_class]
        counted = self._counting(guard, lambda dataset: dataset)

        def for_stmt(dataset: Any, extra_test: Any, body: Any, *rest: Any, **named: Any) -> Any:
            return original(dataset, extra_test, counted(dataset, body), *rest, **named)

        registry._registry[dataset_class] = guard.hook(original, for_stmt)

    def install_iterators(self, control_flow: Any, guard: Guard) -> None:
        """Count the steps of `for batch in iterator` inside a tf.function."""
        self._watch = guard.entry("watching a loop inside a tf.function", self._watch_call)
        counted = self._counting(guard, lambda iterated: getattr(iterated, "_dataset", iterated))
        for name in ("_tf_iterator_for_stmt", "_tf_distributed_iterable_for_stmt"):
            original = getattr(control_flow, name)

            def for_stmt(
                iterated: Any,
                extra_test: Any,
                body: Any,
                *rest: Any,
                _original: Any = original,
                **named: Any,
            ) -> Any:
                return _original(iterated, extra_test, counted(iterated, body), *rest, **named)

            setattr(control_flow, name, guard.hook(original, for_stmt))

    def _counting(self, guard: Guard, dataset_of: Callable[[Any], Any]) -> Callable[..., Any]:
        """An entry that returns the body of a loop with a counter in it, or the body as it is."""
        what = "counting the steps of loops inside a tf.function"
        counts = guard.entry(what, self._count)

        def counted(iterated: Any, body: Callable[[Any], Any]) -> Callable[[Any], Any]:
            measure = self._measured(dataset_of(iterated))
            if measure is None:
                return body

            def body_and_count(batch: Any) -> Any:
                counts(measure)
                return body(batch)

            return body_and_count

        return guard.entry(what, counted, lambda _, body: body)

    def _measured(self, dataset: Any) -> InGraphMeasure | None:
        """What measures the function that is being traced, if any."""
        function = self._updates.outermost
        if function is None or not hasattr(dataset, "element_spec"):
            return None
        measure = self._measure_of.get(function)
        if measure is None:
            call = self._calls.here.current
            given = call.argument if call is not None else None
            known = given if given is not None else dataset
            loop = self._loops.new_in_graph_loop(known, user_site())
            measure = InGraphMeasure(loop, _new_counter(), self._with)
            self._measure_of[function] = measure
            self._measures.append(measure)
        return measure

    def _count(self, measure: InGraphMeasure) -> None:
        measure.counter.assign_add(1)

    @property
    def enough(self) -> bool:
        """Whether the script may be stopped, as an in-graph loop was measured."""
        return self._stop_after and any(measure.done for measure in self._measures)

    def runs(self, function: Any) -> bool:
        """Whether the function is known to loop by itself."""
        return function in self._measure_of

    def call_begins(self, function: Any, args: tuple[Any, ...]) -> InGraphCall:
        """A tf.function is called; it can be cancelled, and is measured if it turns out to loop."""
        argument = next((a for a in args if hasattr(a, "_variant_tensor")), None)
        call = InGraphCall(function, argument, Cancellation())
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
        """It returned or raised."""
        call.over.set()
        if call.watcher is not None:
            call.watcher.join()
        self._calls.here.current = None
        measure = self._measure_of.get(call.function)
        if measure is not None:
            measure.call_ended()

    def _watch_call(self, call: InGraphCall) -> None:
        while not call.over.wait(_INTERVAL_S):
            measure = self._measure_of.get(call.function)
            if measure is None:
                continue
            record = measure.loop.record
            if self._updates.trains(call.function) and record.role == "other":
                record.role, record.role_reason = "training", "its steps write trainable variables"
                record.updates_variables = True
                self._with.tell("loop", line=record.line, file=record.file, kind=record.kind)
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


class InGraphMeasure:
    """Windows of one in-graph loop, in intervals between two readings of its counter."""

    def __init__(self, loop: Loop, counter: Any, instruments: Instruments) -> None:
        self.loop = loop
        self.counter = counter
        self._with = instruments
        self._began: tuple[int, int] | None = None
        self._last: tuple[int, int] | None = None
        self._recent: list[int] = []
        self._steps_in_window = 0
        self._window = self._open("warmup")
        self.done = False

    def poll(self) -> None:
        """Read the counter while the call runs."""
        now, count = time.monotonic_ns(), int(self.counter.numpy())
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
        self._window.add(last[0], average, None, steps)
        self._window.close_block(None, 0, 1)
        self._recent.extend([average] * steps)
        self._advance(now)

    def call_begins(self) -> None:
        """Remember where the call began, for calls that end before the first reading."""
        self._began = (time.monotonic_ns(), int(self.counter.numpy()))

    def call_ended(self) -> None:
        """Take what the call did since the last reading; between two calls there are no steps.

        The first interval of a longer call is left out: the pipeline starts up in it.
        """
        self._last = self._last or self._began
        if self.loop.trains and self._last is not None:
            self.poll()
        self._last = self._began = None
        self.loop.record.seams += 1
        self.loop.record.steps = int(self.counter.numpy())

    def finish(self, reason: str) -> None:
        if self.done:
            return
        if self._window.record.kind == "profile":
            self._with.profiler.stop()
        self._window.close(complete=False, reason=reason)
        self.done = True

    def _advance(self, now: int) -> None:
        pace, elapsed = self._with.pace, self._window.elapsed_ns(now)
        kind = self._window.record.kind
        if kind == "warmup":
            warm, settled = pace.warmed_up(self._recent, len(self._recent), elapsed, None)
            if warm:
                self._window.record.stable = settled
                self._next("baseline")
        elif kind == "baseline" and self._window.count < _FEWEST_INTERVALS:
            return
        elif kind == "baseline" and pace.baseline_done(self._steps_in_window, elapsed, None):
            refused = self._with.profiler.start(self.loop.record.id)
            self._next("profile")
            if refused is not None:
                self._window.record.reason = refused
                self._end(complete=False)
        elif kind == "profile" and pace.profile_done(self._steps_in_window, elapsed):
            failed = self._with.profiler.stop()
            if failed is None:
                self._window.record.trace_directory = str(self._with.profiler.directory)
            self._end(complete=failed is None)

    def _next(self, kind: WindowKind) -> None:
        self._window.close(complete=True)
        self._with.recorder.save()
        self._with.tell("window", window=kind)
        self._window = self._open(kind)
        self._steps_in_window = 0
        # Neither this interval nor what the call did before belongs to the new window.
        self._last = self._began = None

    def _end(self, complete: bool) -> None:
        self._window.close(complete=complete, reason=self._window.record.reason)
        self.done = True
        self._with.recorder.note(
            "The loop runs inside a tf.function: step times are averages over intervals of "
            f"{_INTERVAL_S:g} s, and tf.data gives no gap times for it."
        )
        self._with.recorder.save()
        self._with.tell("measured", loop=self.loop.record.line)

    def _open(self, kind: WindowKind) -> OpenWindow:
        recording = self._with.recorder.recording
        return OpenWindow.begin(
            kind, self.loop.record.id, self.loop.ordinal, recording, self._with.journal
        )


def _new_counter() -> Any:
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import variables

    # Outside of the function that is being traced, so that it may be read while that runs.
    with ops.init_scope(), ops.device("/CPU:0"):
        return variables.Variable(0, dtype=dtypes.int64, trainable=False)
