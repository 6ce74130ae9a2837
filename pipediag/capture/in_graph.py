"""Loops that a tf.function runs by itself: one Python call covers many steps, or a whole epoch.

AutoGraph turns `for batch in dataset` into graph operations, so that no Python runs between steps.
While the loop is traced we add a counter to its body, an assignment of about a microsecond that
leaves the input pipeline as it is; a thread reads it while the call runs. Step times are therefore
averages over short intervals.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

from pipediag.capture.cancellation import Cancellation
from pipediag.capture.diagnosis import Instruments
from pipediag.capture.loops import Loop, LoopRegistry
from pipediag.capture.plan import user_site
from pipediag.capture.updates import UpdateWatch
from pipediag.capture.windows import OpenWindow
from pipediag.session.recording import WindowKind

_INTERVAL_S = 0.2
_FEWEST_INTERVALS = 5


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
        self._measures: dict[int, InGraphMeasure] = {}
        self._argument: Any = None
        self._cancelled_on: int | None = None

    def install_datasets(self, dataset_autograph: Any) -> None:
        """Count the steps of `for batch in dataset` inside a tf.function."""
        registry = dataset_autograph.control_flow.for_loop_registry
        dataset_class = dataset_autograph.dataset_ops.DatasetV2
        original = registry._registry[dataset_class]

        @functools.wraps(original)
        def for_stmt(dataset: Any, extra_test: Any, body: Any, *rest: Any) -> Any:
            return original(dataset, extra_test, self._counted(dataset, body), *rest)

        registry._registry[dataset_class] = for_stmt

    def install_iterators(self, control_flow: Any) -> None:
        """Count the steps of `for batch in iterator` inside a tf.function."""
        for name in ("_tf_iterator_for_stmt", "_tf_distributed_iterable_for_stmt"):
            original = getattr(control_flow, name)

            def for_stmt(
                iterated: Any, extra_test: Any, body: Any, *rest: Any, _original: Any = original
            ) -> Any:
                dataset = getattr(iterated, "_dataset", iterated)
                return _original(iterated, extra_test, self._counted(dataset, body), *rest)

            setattr(control_flow, name, functools.wraps(original)(for_stmt))

    def _counted(self, dataset: Any, body: Callable[[Any], Any]) -> Callable[[Any], Any]:
        function = self._updates.outermost
        if function is None or not hasattr(dataset, "element_spec"):
            return body
        measure = self._measures.get(id(function))
        if measure is None:
            # A dataset that came as an argument is another object inside the function.
            known = self._argument if self._argument is not None else dataset
            loop = self._loops.new_in_graph_loop(known, user_site())
            measure = self._measures[id(function)] = InGraphMeasure(
                loop, _new_counter(), self._with
            )
        counter = measure.counter

        def counted(batch: Any) -> Any:
            counter.assign_add(1)
            return body(batch)

        return counted

    @property
    def enough(self) -> bool:
        """Whether the script may be stopped, as an in-graph loop was measured."""
        return self._stop_after and any(measure.done for measure in self._measures.values())

    def was_cancelled(self) -> bool:
        """Whether a call of this thread was cancelled since this was last asked."""
        if self._cancelled_on is None or self._cancelled_on != threading.get_ident():
            return False
        self._cancelled_on = None
        return True

    def runs(self, function: Any) -> bool:
        """Whether the function is known to loop by itself."""
        return id(function) in self._measures

    def call(self, function: Any, args: tuple[Any, ...], invoke: Callable[[], Any]) -> Any:
        """Run a tf.function so that it can be cancelled, and measured if it turns out to loop."""
        self._argument = next((a for a in args if hasattr(a, "_variant_tensor")), None)
        measure = self._measures.get(id(function))
        if measure is not None:
            measure.call_begins()
        cancellation, over = Cancellation(), threading.Event()
        watcher = threading.Thread(
            target=self._watch,
            args=(function, cancellation, over),
            name="pipediag-in-graph",
            daemon=True,
        )
        watcher.start()
        try:
            with cancellation.context:
                return invoke()
        finally:
            over.set()
            watcher.join()
            if cancellation.started:
                self._cancelled_on = threading.get_ident()
            measure = self._measures.get(id(function))
            if measure is not None:
                measure.call_ended()
            self._argument = None

    def _watch(self, function: Any, cancellation: Cancellation, over: threading.Event) -> None:
        while not over.wait(_INTERVAL_S):
            measure = self._measures.get(id(function))
            if measure is None:
                continue
            record = measure.loop.record
            if self._updates.trains(function) and record.role == "other":
                record.role, record.role_reason = "training", "its steps write trainable variables"
                record.updates_variables = True
                self._with.tell("loop", line=record.line, file=record.file, kind=record.kind)
            if not measure.loop.trains:
                continue
            measure.poll()
            if measure.done and self._stop_after:
                if cancellation.lack is not None:
                    self._with.recorder.note(cancellation.lack)
                    return
                cancellation.start()
                return

    def finish(self, reason: str) -> None:
        """Close what is open."""
        for measure in self._measures.values():
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
