"""Where pipediag hooks into TensorFlow: iterators and tf.functions.

Nothing is imported here that the script has not imported: each hook is installed when the module it
belongs to arrives. Hooks run on every step, so they are short.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from typing import Any

from pipediag.capture.frameworks.keras.hooks import KerasHooks
from pipediag.capture.frameworks.tensorflow.function_calls import FunctionCalls
from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Consumer
from pipediag.capture.measuring.kept_state import KeptState
from pipediag.capture.measuring.profiler import Profiler
from pipediag.capture.pipelines.plan_recorder import PlanRecorder
from pipediag.capture.trying.held_loops import HeldLoops
from pipediag.capture.watching.conductor import Conductor
from pipediag.capture.watching.in_graph import InGraphLoops
from pipediag.capture.watching.other_uses import OtherUses
from pipediag.capture.watching.updates import UpdateWatch

_CONSUMER = "_pipediag_consumer"


class Hooks:
    """Installs itself on modules as they are imported."""

    def __init__(
        self,
        conductor: Conductor,
        plan: PlanRecorder,
        updates: UpdateWatch,
        profiler: Profiler,
        in_graph: InGraphLoops,
        held: HeldLoops,
        state: KeptState,
        other_uses: OtherUses,
        guard: Guard,
        arrived: Callable[[], None],
    ) -> None:
        self._guard = guard
        self._arrived = guard.entry("noting TensorFlow's version", arrived)
        self._other_uses = other_uses
        self._conductor = conductor
        self._in_graph = in_graph
        self._held = held
        self._state = state
        self._keras = KerasHooks(conductor, updates, held, guard)
        self._plan = plan
        self._updates = updates
        self._profiler = profiler
        self._functions = FunctionCalls(
            conductor, updates, in_graph, held, other_uses, self._consumer_among
        )
        self._distributing = _Distributing()
        self._iterator_classes: tuple[type, ...] = ()
        self._executing_eagerly: Callable[[], bool] = bool
        self._out_of_range: type[Exception] = StopIteration

    def install(self) -> None:
        """Wait for TensorFlow; a hook that does not fit it is left out, and noted."""
        wait = self._guard.entry("waiting for TensorFlow", self._wait_for_modules)
        arrival = _Arrival("tensorflow", wait)
        sys.meta_path.insert(0, arrival)
        self._guard.in_forked_child(arrival.leave)

    def _wait_for_modules(self) -> None:
        # Not sooner: TensorFlow needs wrapt itself, a script without TensorFlow does not.
        import wrapt

        for module, hook in (
            ("tensorflow.python.data.ops.dataset_ops", self._on_datasets),
            ("tensorflow.python.data.ops.readers", self._on_readers),
            ("tensorflow.python.data.ops.iterator_ops", self._on_iterators),
            ("tensorflow.python.distribute.input_lib", self._on_distributed),
            ("tensorflow.python.data.ops.dataset_autograph", self._on_dataset_autograph),
            ("tensorflow.python.autograph.operators.control_flow", self._on_control_flow),
            (
                "tensorflow.python.eager.polymorphic_function.polymorphic_function",
                self._on_functions,
            ),
            ("tensorflow.python.framework.func_graph", self._on_tracing),
            ("tensorflow.python.ops.resource_variable_ops", self._on_variables),
            ("tensorflow.python.profiler.profiler_v2", self._on_profiler),
            ("tensorflow.python.client.session", self._on_session),
            ("tensorflow.python.training.optimizer", self._on_v1_optimizer),
            *self._keras.by_module(),
            *self._state.by_module(),
        ):
            wrapt.register_post_import_hook(
                self._guard.entry(f"hooking into {module}", hook), module
            )

    def _on_datasets(self, module: Any) -> None:
        self._arrived()
        self._plan.install(module.DatasetV2, self._guard)

    def _on_dataset_autograph(self, module: Any) -> None:
        register = module.register_overrides
        registered = self._guard.entry(
            "watching loops inside tf.functions",
            lambda: self._in_graph.install_datasets(module, self._guard),
        )

        def register_and_watch(*args: Any, **kwargs: Any) -> None:
            register(*args, **kwargs)
            registered()

        module.register_overrides = self._guard.hook(register, register_and_watch)

    def _on_control_flow(self, module: Any) -> None:
        self._in_graph.install_iterators(module, self._guard)

    def _on_readers(self, module: Any) -> None:
        for name in ("TFRecordDatasetV2", "TextLineDatasetV2", "FixedLengthRecordDatasetV2"):
            self._plan.install_reader(getattr(module, name), self._guard)

    def _on_variables(self, module: Any) -> None:
        self._updates.install_variables(module.BaseResourceVariable, self._guard)

    def _on_tracing(self, module: Any) -> None:
        module.func_graph_from_py_func = self._updates.timed(
            module.func_graph_from_py_func, self._guard
        )

    def _on_session(self, module: Any) -> None:
        self._other_uses.install_session(module.BaseSession, self._guard)

    def _on_profiler(self, module: Any) -> None:
        self._profiler.install(module, self._guard)

    def _on_v1_optimizer(self, module: Any) -> None:
        self._updates.install_optimizer(module.Optimizer, "apply_gradients", self._guard)

    def _on_iterators(self, module: Any) -> None:
        guard, owned = self._guard, module.OwnedIterator
        create, advance = owned._create_iterator, owned._next_internal
        made = guard.entry("watching iterators", self._iterator_made, vital=True)
        asked = guard.entry("watching iterators", self._consumer_that_asks, vital=True)
        failed = guard.entry("watching iterators", self._advance_failed, vital=True)
        handed_over = self._hand_over()
        from tensorflow.python.eager import context
        from tensorflow.python.framework import errors

        def create_iterator(iterator: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
            create(iterator, dataset, *args, **kwargs)
            made(iterator, dataset)

        def next_internal(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            consumer: Consumer | None = asked(iterator)
            if consumer is None:
                return advance(iterator, *args, **kwargs)
            asked_ns = time.monotonic_ns()
            try:
                batch = advance(consumer.stand_in.asked(iterator), *args, **kwargs)
            except Exception as error:
                if not failed(consumer, error):
                    raise
                batch = advance(consumer.stand_in.asked(iterator), *args, **kwargs)
            return handed_over(consumer, asked_ns, time.monotonic_ns(), batch)

        self._executing_eagerly = context.executing_eagerly
        self._out_of_range = errors.OutOfRangeError
        self._held.pull = advance
        self._iterator_classes += (owned,)
        owned._create_iterator = guard.hook(create, create_iterator)
        owned._next_internal = guard.hook(advance, next_internal)

    def _hand_over(self) -> Callable[..., Any]:
        """An entry that returns the batch to hand over."""
        conductor = self._conductor
        return self._guard.entry(
            "counting the steps of loops", conductor.handed_over, conductor.kept, vital=True
        )

    def _iterator_made(self, iterator: Any, dataset: Any) -> None:
        observed = self._executing_eagerly() and not self._distributing.inside
        if observed and _is_observed(dataset):
            iterator.__dict__[_CONSUMER] = self._conductor.iterator_made(iterator, dataset)

    def _consumer_that_asks(self, iterator: Any) -> Consumer | None:
        """Whose batch the script asks for; None where it is TensorFlow that asks."""
        consumer: Consumer | None = iterator.__dict__.get(_CONSUMER)
        if consumer is None or self._distributing.inside or self._updates.inside_function:
            return None
        return consumer

    def _advance_failed(self, consumer: Consumer, error: Exception) -> bool:
        """Whether an arm of a trial was to blame, so that the script's own iterator is asked."""
        if self._held.failed(consumer, error):
            return True
        if isinstance(error, self._out_of_range):
            self._conductor.exhausted(consumer)
        return False

    def _on_distributed(self, module: Any) -> None:
        guard, distributing = self._guard, self._distributing
        made = guard.entry("watching distributed iterators", self._distributed_made, vital=True)
        asked = guard.entry("watching distributed iterators", self._consumer_of, vital=True)
        failed = guard.entry(
            "watching distributed iterators", self._conductor.exhausted, vital=True
        )
        handed_over = self._hand_over()

        def watch_creation(dataset_class: Any) -> None:
            original = dataset_class.__iter__

            def iterate(dataset: Any) -> Any:
                distributing.inside = True
                try:
                    iterator = original(dataset)
                finally:
                    distributing.inside = False
                made(iterator, dataset)
                return iterator

            dataset_class.__iter__ = guard.hook(original, iterate)

        watch_creation(module.DistributedDataset)
        watch_creation(module.DistributedDatasetsFromFunction)
        advance = module.DistributedIteratorBase.get_next

        def get_next(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            consumer: Consumer | None = asked(iterator)
            if consumer is None:
                return advance(iterator, *args, **kwargs)
            asked_ns = time.monotonic_ns()
            distributing.inside = True
            try:
                batch = advance(iterator, *args, **kwargs)
            except Exception:
                failed(consumer)
                raise
            finally:
                distributing.inside = False
            return handed_over(consumer, asked_ns, time.monotonic_ns(), batch)

        self._iterator_classes += (module.DistributedIteratorBase,)
        module.DistributedIteratorBase.get_next = guard.hook(advance, get_next)

    def _distributed_made(self, iterator: Any, dataset: Any) -> None:
        iterator.__dict__[_CONSUMER] = self._conductor.iterator_made(
            iterator, dataset, distributed=True
        )

    def _consumer_of(self, iterator: Any) -> Consumer | None:
        consumer: Consumer | None = iterator.__dict__.get(_CONSUMER)
        return None if self._updates.inside_function else consumer

    def _on_functions(self, module: Any) -> None:
        self._functions.install(module, self._guard)

    def _consumer_among(self, args: tuple[Any, ...]) -> tuple[Consumer | None, Any]:
        """The first argument that is one of our iterators, and what it belongs to."""
        for argument in args:
            # By class first: a tensor has no dictionary until it is asked for one.
            if isinstance(argument, self._iterator_classes):
                consumer: Consumer | None = argument.__dict__.get(_CONSUMER)
                if consumer is not None:
                    return consumer, argument
        return None, None


class _Arrival(MetaPathFinder):
    """Finds nothing, but tells when a package is about to be imported for the first time."""

    def __init__(self, package: str, arrives: Callable[[], None]) -> None:
        self._package = package
        self._arrives = arrives

    def find_spec(self, fullname: str, *_: object) -> None:
        """Called for every import until the package comes."""
        if fullname == self._package and self in sys.meta_path:
            self.leave()
            self._arrives()

    def leave(self) -> None:
        """Wait no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class _Distributing(threading.local):
    """Whether a thread is inside a distributed iterator, which asks others for its batches."""

    inside = False


def _is_observed(dataset: Any) -> bool:
    """Leave out the per-device halves of a distributed iterator and pipediag's own datasets."""
    name = type(dataset).__name__
    return name not in (
        "_PerDeviceGenerator",
        "_ReincarnatedPerDeviceGenerator",
        "_RestructuredDataset",
    )
