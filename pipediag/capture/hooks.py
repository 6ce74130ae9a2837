"""Where pipediag hooks into TensorFlow: iterators and tf.functions.

Nothing is imported here that the script has not imported: each hook is installed when the module it
belongs to arrives. Hooks run on every step, so they are short.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from typing import Any

from pipediag.capture.conductor import Conductor
from pipediag.capture.held_loops import HeldLoops
from pipediag.capture.in_graph import InGraphLoops
from pipediag.capture.kept_state import KeptState
from pipediag.capture.keras_hooks import KerasHooks
from pipediag.capture.loops import Consumer
from pipediag.capture.other_uses import STEP_WITHOUT_DATASET, OtherUses
from pipediag.capture.plan import PlanRecorder
from pipediag.capture.profiler import Profiler
from pipediag.capture.updates import UpdateWatch

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
        note: Callable[[str], None],
    ) -> None:
        self._other_uses = other_uses
        self._note = note
        self._conductor = conductor
        self._in_graph = in_graph
        self._held = held
        self._state = state
        self._keras = KerasHooks(conductor, updates, held)
        self._plan = plan
        self._updates = updates
        self._profiler = profiler
        self._inside_distributed = False
        self._iterator_classes: tuple[type, ...] = ()
        self._out_of_range: type[Exception] = StopIteration

    def install(self) -> None:
        """Wait for TensorFlow; a hook that does not fit it is left out, and noted."""
        sys.meta_path.insert(0, _Arrival("tensorflow", self._wait_for_modules))

    def _wait_for_modules(self) -> None:
        # Not sooner: TensorFlow needs wrapt itself, a script without TensorFlow does not.
        import wrapt

        for module, hook in (
            ("tensorflow.python.data.ops.dataset_ops", self._on_datasets),
            ("tensorflow.python.data.ops.readers", self._on_readers),
            ("tensorflow.python.data.ops.iterator_ops", self._on_iterators),
            ("tensorflow.python.distribute.input_lib", self._on_distributed),
            ("tensorflow.python.data.ops.dataset_autograph", self._on_dataset_autograph),
            (
                "tensorflow.python.autograph.operators.control_flow",
                self._in_graph.install_iterators,
            ),
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
        ):
            wrapt.register_post_import_hook(self._careful(hook), module)
        for module in self._state.modules:
            wrapt.register_post_import_hook(self._careful(self._state.install), module)

    def _careful(self, hook: Callable[[Any], None]) -> Callable[[Any], None]:
        def install(module: Any) -> None:
            try:
                hook(module)
            except Exception as error:
                self._note(
                    f"Pipediag could not hook into {module.__name__}, so part of the diagnosis "
                    f"may be missing: {type(error).__name__}: {error}"
                )

        return install

    def _on_datasets(self, module: Any) -> None:
        self._plan.install(module.DatasetV2)

    def _on_dataset_autograph(self, module: Any) -> None:
        register = module.register_overrides

        @functools.wraps(register)
        def register_and_watch() -> None:
            register()
            self._in_graph.install_datasets(module)

        module.register_overrides = register_and_watch

    def _on_readers(self, module: Any) -> None:
        for name in ("TFRecordDatasetV2", "TextLineDatasetV2", "FixedLengthRecordDatasetV2"):
            self._plan.install_reader(getattr(module, name))

    def _on_variables(self, module: Any) -> None:
        self._updates.install_variables(module.BaseResourceVariable)

    def _on_tracing(self, module: Any) -> None:
        module.func_graph_from_py_func = self._updates.timed(module.func_graph_from_py_func)

    def _on_session(self, module: Any) -> None:
        self._other_uses.install_session(module.BaseSession)

    def _on_profiler(self, module: Any) -> None:
        self._profiler.install(module)

    def _on_v1_optimizer(self, module: Any) -> None:
        self._updates.install_optimizer(module.Optimizer, "apply_gradients")

    def _on_iterators(self, module: Any) -> None:
        conductor, updates = self._conductor, self._updates
        hooks = self
        owned = module.OwnedIterator
        create, advance = owned._create_iterator, owned._next_internal
        from tensorflow.python.eager import context
        from tensorflow.python.framework import errors

        @functools.wraps(create)
        def create_iterator(iterator: Any, dataset: Any) -> None:
            create(iterator, dataset)
            observed = context.executing_eagerly() and not hooks._inside_distributed
            if observed and _is_observed(dataset):
                iterator.__dict__[_CONSUMER] = conductor.iterator_made(iterator, dataset)

        @functools.wraps(advance)
        def next_internal(iterator: Any) -> Any:
            consumer: Consumer | None = iterator.__dict__.get(_CONSUMER)
            if consumer is None or hooks._inside_distributed or updates.inside_function:
                return advance(iterator)
            asked = time.monotonic_ns()
            try:
                batch = advance(consumer.substitute or iterator)
            except Exception as error:
                if not hooks._held.failed(consumer, error):
                    if isinstance(error, errors.OutOfRangeError):
                        conductor.exhausted(consumer)
                    raise
                batch = advance(consumer.substitute or iterator)
            return conductor.handed_over(consumer, asked, time.monotonic_ns(), batch)

        hooks._held.pull = advance
        self._iterator_classes += (owned,)
        owned._create_iterator = create_iterator
        owned._next_internal = next_internal

    def _on_distributed(self, module: Any) -> None:
        conductor, hooks = self._conductor, self

        def watch_creation(dataset_class: Any) -> None:
            original = dataset_class.__iter__

            @functools.wraps(original)
            def iterate(dataset: Any) -> Any:
                hooks._inside_distributed = True
                try:
                    iterator = original(dataset)
                finally:
                    hooks._inside_distributed = False
                iterator.__dict__[_CONSUMER] = conductor.iterator_made(
                    iterator, dataset, distributed=True
                )
                return iterator

            dataset_class.__iter__ = iterate

        watch_creation(module.DistributedDataset)
        watch_creation(module.DistributedDatasetsFromFunction)
        advance = module.DistributedIteratorBase.get_next

        @functools.wraps(advance)
        def get_next(iterator: Any, *args: Any, **kwargs: Any) -> Any:
            consumer: Consumer | None = iterator.__dict__.get(_CONSUMER)
            if consumer is None or hooks._updates.inside_function:
                return advance(iterator, *args, **kwargs)
            asked = time.monotonic_ns()
            hooks._inside_distributed = True
            try:
                batch = advance(iterator, *args, **kwargs)
            except Exception:
                conductor.exhausted(consumer)
                raise
            finally:
                hooks._inside_distributed = False
            return conductor.handed_over(consumer, asked, time.monotonic_ns(), batch)

        self._iterator_classes += (module.DistributedIteratorBase,)
        module.DistributedIteratorBase.get_next = get_next

    def _on_functions(self, module: Any) -> None:
        original = module.Function.__call__
        calling = threading.local()
        hooks = self

        @functools.wraps(original)
        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(calling, "inside", False):
                return original(function, *args, **kwargs)
            calling.inside = True
            try:
                result = hooks._outer_call(original, function, args, kwargs)
            except Exception:
                hooks._stop_where_cancelled()
                raise
            finally:
                calling.inside = False
            # A call that is cancelled may also end as if its data had come to their end.
            hooks._stop_where_cancelled()
            return result

        self._out_of_range = module.errors.OutOfRangeError
        module.Function.__call__ = call

    def _outer_call(
        self, original: Callable[..., Any], function: Any, args: tuple[Any, ...], kwargs: Any
    ) -> Any:
        """A call of a tf.function from the script's own level."""
        in_graph = self._in_graph
        loops_itself = in_graph.runs(function)
        if loops_itself and in_graph.enough:
            self._conductor.stop()
        before = function.experimental_get_tracing_count()
        consumer, iterator = (None, None) if loops_itself else self._consumer_among(args)
        if consumer is not None:
            instead = self._conductor.call_begins(consumer, iterator)
            args = tuple(instead if argument is iterator else argument for argument in args)
        self._updates.enter(function)
        try:
            if before == 0 or loops_itself:
                return in_graph.call(function, args, lambda: original(function, *args, **kwargs))
            return self._held.call(consumer, lambda: original(function, *args, **kwargs))
        except Exception as error:
            if consumer is None:
                raise
            if self._held.failed(consumer, error):
                fallback = consumer.substitute or iterator
                args = tuple(fallback if argument is instead else argument for argument in args)
                return original(function, *args, **kwargs)
            if isinstance(error, self._out_of_range):
                self._conductor.exhausted(consumer)
            raise
        finally:
            count = function.experimental_get_tracing_count()
            if not self._conductor.in_a_loop and self._updates.trains(function):
                self._other_uses.note(STEP_WITHOUT_DATASET)
            if count != before:
                self._conductor.function_traced(function, again=before > 0)
            self._updates.leave()

    def _stop_where_cancelled(self) -> None:
        if self._in_graph.was_cancelled():
            self._conductor.stop()

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
            sys.meta_path.remove(self)
            self._arrives()


def _is_observed(dataset: Any) -> bool:
    """Leave out the per-device halves of a distributed iterator and pipediag's own datasets."""
    name = type(dataset).__name__
    return name not in (
        "_PerDeviceGenerator",
        "_ReincarnatedPerDeviceGenerator",
        "_RestructuredDataset",
    )
