"""Loops that a tf.function runs by itself: one Python call covers many steps, or a whole epoch.

AutoGraph turns `for batch in dataset` into graph operations, so that no Python runs between steps.
While the loop is traced we add a counter to its body, an assignment of about a microsecond that
leaves the input pipeline as it is; a thread reads it while the call runs. Step times are therefore
averages over short intervals.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pipediag.capture.frameworks.tensorflow.cancellation import Cancellation
from pipediag.capture.guard import Guard
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.measuring.instruments import Instruments
from pipediag.capture.pipelines.user_site import user_site
from pipediag.capture.threads import EachThread
from pipediag.capture.watching.in_graph_measure import INTERVAL_S, InGraphMeasure
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.messages import LoopFound


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


def _new_counter() -> Any:
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import variables

    # Outside of the function that is being traced, so that it may be read while that runs.
    with ops.init_scope(), ops.device("/CPU:0"):
        return variables.Variable(0, dtype=dtypes.int64, trainable=False)
