"""Where pipediag hooks into TensorFlow, by module. Hooks run on every step, so they are short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from pipediag.capture.frameworks.framework import Hook
from pipediag.capture.frameworks.tensorflow.environment import note_version
from pipediag.capture.frameworks.tensorflow.function_calls import FunctionCalls
from pipediag.capture.frameworks.tensorflow.graph_loops import GraphLoops
from pipediag.capture.frameworks.tensorflow.iterators import Iterators
from pipediag.capture.frameworks.tensorflow.runtime import TensorFlowRuntime
from pipediag.capture.frameworks.tensorflow.saved_models import watch_saving
from pipediag.capture.frameworks.tensorflow.tables.listening import hear_cancellable_calls
from pipediag.capture.frameworks.tensorflow.traced_earlier import functions_that_train
from pipediag.capture.frameworks.tensorflow.variables import watch_writes
from pipediag.capture.measuring.sampling import PYTHON_CLOCK
from pipediag.capture.watching.watchers import SESSION_RUN, Watchers
from pipediag.tensorflow_versions import is_too_old

_READERS = ("TFRecordDatasetV2", "TextLineDatasetV2", "FixedLengthRecordDatasetV2")
_MORE_READERS = ("CsvDatasetV2", "SqlDatasetV2")
_HELPERS_OWN = {
    "tensorflow.python.data.ops.map_op": ("_MapDataset", "map"),
    "tensorflow.python.data.ops.readers": ("ParallelInterleaveDataset", "interleave"),
    "tensorflow.python.data.experimental.ops.parsing_ops": (
        "_ParseExampleDataset",
        "parse_example_dataset",
    ),
    "tensorflow.python.data.experimental.ops.from_list": ("_ListDataset", "from_list"),
    "tensorflow.python.data.experimental.ops.batching": ("_MapAndBatchDataset", "map_and_batch"),
}
"""Classes that TensorFlow's helpers make where users call a method, and which."""


class TensorFlowHooks:
    """Knows which of its modules keeps what is hooked."""

    def __init__(self, watchers: Watchers) -> None:
        self._with = watchers
        self._guard = watchers.guard
        self._arrived = watchers.guard.entry("noting TensorFlow's version", self._note_arrival)
        runtime = TensorFlowRuntime()
        self._iterators = Iterators(watchers, runtime)
        self._functions = FunctionCalls(watchers, runtime, self._iterators.consumer_among)
        self._loops = GraphLoops(watchers, runtime)
        self._eager_step = watchers.guard.entry(
            "watching eager steps", partial(self._note_eager_step, runtime), vital=True
        )

    def by_module(self) -> Iterator[tuple[str, Hook]]:
        """Each module that may come, and what to do once it has."""
        yield "tensorflow.python.data.ops.dataset_ops", self._on_datasets
        yield "tensorflow.python.data.ops.readers", partial(self._on_readers, _READERS)
        yield (
            "tensorflow.python.data.experimental.ops.readers",
            partial(self._on_readers, _MORE_READERS),
        )
        for module, made in _HELPERS_OWN.items():
            yield module, partial(self._on_helpers_own, *made)
        yield "tensorflow.python.data.ops.iterator_ops", self._iterators.install_owned
        yield "tensorflow.python.distribute.input_lib", self._iterators.install_distributed
        yield "tensorflow.python.data.ops.dataset_autograph", self._on_dataset_autograph
        yield "tensorflow.python.autograph.operators.control_flow", self._loops.install_iterators
        yield (
            "tensorflow.python.eager.polymorphic_function.polymorphic_function",
            self._on_functions,
        )
        yield "tensorflow.python.eager.execute", self._on_execution
        yield "tensorflow.python.framework.func_graph", self._on_tracing
        yield "tensorflow.python.ops.resource_variable_ops", self._on_variables
        yield "tensorflow.python.ops.script_ops", self._on_python_functions
        yield "tensorflow.python.distribute.mirrored_run", self._on_replicas
        yield "tensorflow.python.saved_model.save", self._on_saved_models
        yield "tensorflow.python.profiler.profiler_v2", self._on_profiler
        yield "tensorflow.python.client.session", self._on_session
        yield "tensorflow.python.training.optimizer", self._on_v1_optimizer
        yield "keras.src.backend.tensorflow.optimizer", self._on_keras_optimizer

    def _note_arrival(self) -> None:
        # At once: a script that is killed soon afterwards is told from one that never came so far.
        environment = self._with.recorder.recording.environment
        note_version(environment)
        self._with.recorder.save()
        if is_too_old(environment.tensorflow):
            self._guard.give_up()

    def _on_datasets(self, module: Any) -> None:
        self._arrived()
        self._with.plan.install(module.DatasetV2, self._guard)

    def _on_readers(self, names: Iterable[str], module: Any) -> None:
        for name in names:
            self._with.plan.install_reader(getattr(module, name), self._guard)

    def _on_helpers_own(self, name: str, kind: str, module: Any) -> None:
        # Other versions of TensorFlow may make them elsewhere: then they stay what they are.
        if hasattr(module, name):
            self._with.plan.install_constructor(getattr(module, name), kind, self._guard)

    def _on_dataset_autograph(self, module: Any) -> None:
        register = module.register_overrides
        registered = self._guard.entry(
            "watching loops inside tf.functions",
            lambda: self._loops.install_datasets(module),
        )

        def register_and_watch(*args: Any, **kwargs: Any) -> None:
            register(*args, **kwargs)
            registered()

        module.register_overrides = self._guard.hook(register, register_and_watch)

    def _on_functions(self, module: Any) -> None:
        self._functions.install(module, self._guard)
        if self._with.came_late:
            self._guard.attempt(
                "looking for functions that were traced before", self._know_earlier, module.Function
            )

    def _know_earlier(self, function_class: type) -> None:
        for function in functions_that_train(function_class):
            self._with.updates.knows(function)

    def _on_execution(self, module: Any) -> None:
        hear_cancellable_calls(module, self._guard)

    def _on_tracing(self, module: Any) -> None:
        trace = module.func_graph_from_py_func
        module.func_graph_from_py_func = self._with.updates.timed(
            trace, self._guard, self._with.timeline
        )

    def _on_variables(self, module: Any) -> None:
        # TensorFlow itself gives the latter writes of its own later on, around the former's: in a
        # program that has imported all of it, no other are called.
        classes = (module.BaseResourceVariable, module.ResourceVariable)
        watch_writes(classes, self._with.updates, self._guard)

    def _on_python_functions(self, module: Any) -> None:
        PYTHON_CLOCK.hook_into(module.FuncRegistry, self._guard)

    def _on_replicas(self, module: Any) -> None:
        kind, updates = module._MirroredReplicaThread, self._with.updates
        made = self._guard.entry(
            "telling which steps train", lambda thread, *_, **__: updates.begins_replica(thread)
        )
        kind.__init__ = self._guard.before(kind.__init__, made)

    def _on_saved_models(self, module: Any) -> None:
        watch_saving(module, self._guard)

    def _on_profiler(self, module: Any) -> None:
        self._with.profiler.install(module, self._guard)

    def _on_session(self, module: Any) -> None:
        runs = self._guard.entry(
            "counting sessions", lambda *_, **__: self._with.other_uses.note(SESSION_RUN)
        )
        session = module.BaseSession
        session.run = self._guard.before(vars(session)["run"], runs)

    def _on_keras_optimizer(self, module: Any) -> None:
        """A step that no function runs is told by its optimizer."""
        optimizer = module.TFOptimizer
        for name in ("_backend_update_step", "_internal_apply_gradients"):
            original = vars(optimizer).get(name)
            if original is not None:
                setattr(optimizer, name, self._guard.before(original, self._eager_step))
                return

    def _note_eager_step(self, runtime: TensorFlowRuntime, *_: Any, **__: Any) -> None:
        if not self._with.updates.busy:
            self._with.conductor.fed_step(runtime)

    def _on_v1_optimizer(self, module: Any) -> None:
        self._with.updates.install_optimizer(module.Optimizer, "apply_gradients", self._guard)
