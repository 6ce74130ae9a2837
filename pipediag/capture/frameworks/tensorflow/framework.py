"""Hooks into TensorFlow's modules, and facts about the installed TensorFlow."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

from pipediag.capture.callsites import call_site
from pipediag.capture.frameworks.tensorflow.paired_steps import PairedSteps
from pipediag.capture.frameworks.tensorflow.steps import FunctionCalls, Iterators
from pipediag.capture.frameworks.tensorflow.tables.step_graph import StepGraph
from pipediag.capture.frameworks.tensorflow.tables.whole_tables import Writes
from pipediag.capture.guard import Guard
from pipediag.capture.measuring.sampling import PYTHON_CLOCK
from pipediag.capture.pipelines.calls import user_site
from pipediag.capture.recorder import version_of
from pipediag.capture.watching.step_clock import Hook, Watchers
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.recording import NAME_BEGINS, Device, OtherUse, RecordedEnvironment
from pipediag.session.worker import worker_of
from pipediag.tensorflow_names import is_too_old

_EXPERIMENTAL = "data.experimental.ops"
_CONSTRUCTED = {
    "data.ops.readers": {
        "TFRecordDatasetV2": "TFRecordDataset",
        "TextLineDatasetV2": "TextLineDataset",
        "FixedLengthRecordDatasetV2": "FixedLengthRecordDataset",
        "ParallelInterleaveDataset": "interleave",
    },
    f"{_EXPERIMENTAL}.readers": {"CsvDatasetV2": "CsvDataset", "SqlDatasetV2": "SqlDataset"},
    "data.ops.map_op": {"_MapDataset": "map"},
    f"{_EXPERIMENTAL}.parsing_ops": {"_ParseExampleDataset": "parse_example_dataset"},
    f"{_EXPERIMENTAL}.from_list": {"_ListDataset": "from_list"},
    f"{_EXPERIMENTAL}.batching": {"_MapAndBatchDataset": "map_and_batch"},
}
"""Classes that users make datasets by, or TensorFlow's helpers where users call a method, by
module of `tensorflow.python`, and which method. Other versions may make them elsewhere: then they
stay what they are."""
_OPTIMIZERS = {
    "keras.src.optimizers.base_optimizer": "BaseOptimizer",
    "tf_keras.src.optimizers.optimizer": "Optimizer",
    "tf_keras.src.optimizers.legacy.optimizer_v2": "OptimizerV2",
}
"""Classes of optimizers whose `apply_gradients` scripts call, by module."""

_UNSEEN = (
    "a loop inside a tf.function, whose steps can't be measured (let Python run the loop, and the "
    "function a single step)"
)


class TensorFlow:
    """The hooks on TensorFlow's own modules, and on Keras's optimizer for it."""

    def __init__(self, watchers: Watchers) -> None:
        self._with = watchers
        self._guard = watchers.guard
        self._uses = watchers.recorder.recording.other_uses
        self._arrived = watchers.guard.entry("noting TensorFlow's version", self._note_arrival)
        self._iterators = Iterators(watchers)
        self._functions = FunctionCalls(watchers, self._iterators.consumer_among)
        self._loop_found = self._guard.entry(
            "noting loops inside a tf.function", self._note_graph_loop
        )
        # A step that only one of several workers makes twice would wait for the others.
        alone = watchers.held.makes_trials and worker_of() is None
        self._paired = PairedSteps(watchers.steps) if alone else None

    def by_module(self) -> Iterator[tuple[str, Hook]]:
        for module, hook in self._by_module_of_tensorflow():
            yield f"tensorflow.python.{module}", hook
        yield "keras.src.backend.tensorflow.optimizer", self._on_keras_optimizer
        if self._paired is not None:
            for module, name in _OPTIMIZERS.items():
                yield module, partial(self._paired.install_optimizer, name, self._guard)

    def _by_module_of_tensorflow(self) -> Iterator[tuple[str, Hook]]:
        guard, updates = self._guard, self._with.updates
        yield "data.ops.dataset_ops", self._on_datasets
        for module, kinds in _CONSTRUCTED.items():
            yield module, partial(self._on_constructed, kinds)
        yield "data.ops.iterator_ops", self._iterators.install_owned
        yield "distribute.input_lib", self._iterators.install_distributed
        yield "data.ops.dataset_autograph", self._on_dataset_autograph
        yield "autograph.operators.control_flow", self._on_control_flow
        yield "eager.polymorphic_function.polymorphic_function", self._on_functions
        yield "framework.func_graph", self._on_tracing
        yield "ops.resource_variable_ops", self._on_variables
        yield "ops.script_ops", lambda one: PYTHON_CLOCK.hook_into(one.FuncRegistry, guard)
        yield "distribute.mirrored_run", self._on_replicas
        yield "saved_model.save", partial(watch_saving, guard=guard)
        show_before = self._with.state.show_before
        yield "checkpoint.checkpoint", partial(show_before, ("TrackableSaver.save",))
        yield "profiler.profiler_v2", lambda one: self._with.profiler.install(one, guard)
        yield "client.session", self._on_sessions
        yield "training.optimizer", lambda one: updates.install_optimizer(one.Optimizer, guard)
        if (paired := self._paired) is not None:
            yield "eager.backprop", lambda one: paired.install_tape(one, guard)

    @staticmethod
    def describe(environment: RecordedEnvironment) -> None:
        tensorflow = sys.modules.get("tensorflow")
        context = sys.modules.get("tensorflow.python.eager.context")
        if tensorflow is None or context is None:
            return
        environment.tensorflow = version_of("tensorflow")
        build = tensorflow.sysconfig.get_build_info()
        environment.cuda_build = bool(build.get("is_cuda_build") or build.get("is_rocm_build"))
        environment.run_functions_eagerly = tensorflow.config.functions_run_eagerly()
        modes = sys.modules.get("tensorflow.python.data.ops.debug_mode")
        environment.tf_data_debug_mode = bool(modes is not None and modes.DEBUG_MODE)
        current = context.context()
        # Asking for devices would initialise a runtime that the script has not set up yet.
        if current._initialized:
            environment.devices = [
                Device(name=one.name, kind=one.device_type)
                for one in current.list_logical_devices()
            ]

    def _note_arrival(self) -> None:
        # At once: a script that is killed soon afterwards differs from one that never came so far.
        environment = self._with.recorder.recording.environment
        versions = sys.modules.get("tensorflow.python.framework.versions")
        environment.tensorflow = getattr(versions, "__version__", None) or "unknown"
        self._with.recorder.save()
        if is_too_old(environment.tensorflow):
            self._guard.give_up()

    def _on_datasets(self, module: Any) -> None:
        self._arrived()
        self._with.plan.install(module.DatasetV2, self._guard)

    def _on_constructed(self, kinds: Mapping[str, str], module: Any) -> None:
        for name, kind in kinds.items():
            if hasattr(module, name):
                self._with.plan.install_constructor(getattr(module, name), kind, self._guard)

    def _on_dataset_autograph(self, module: Any) -> None:
        """Note each `for batch in dataset` inside a tf.function, once AutoGraph knows of these."""
        register, what = module.register_overrides, "watching loops inside tf.functions"
        registered = self._guard.entry(what, lambda: self._on_registered(module))

        def register_and_watch(*args: Any, **kwargs: Any) -> None:
            register(*args, **kwargs)
            registered()

        hook = self._guard.hook(register, register_and_watch)
        self._guard.replace(module, "register_overrides", hook)

    def _on_registered(self, module: Any) -> None:
        registry = module.control_flow.for_loop_registry._registry
        dataset_class = module.dataset_ops.DatasetV2
        registry[dataset_class] = self._guard.before(registry[dataset_class], self._loop_found)

    def _on_control_flow(self, module: Any) -> None:
        """Note each `for batch in iterator` inside a tf.function."""
        for name in ("_tf_iterator_for_stmt", "_tf_distributed_iterable_for_stmt"):
            hook = self._guard.before(getattr(module, name), self._loop_found)
            self._guard.replace(module, name, hook)

    def _note_graph_loop(self, *_: Any, **__: Any) -> None:
        functions, site = self._with.updates.here.functions, user_site()
        if not functions or site is None:
            return
        self._with.updates.looping.add(functions[0])
        place = (site.file, site.line)
        if self._use_at(*place) is None:
            self._uses.append(OtherUse(_UNSEEN, *place, 1))

    def _on_functions(self, module: Any) -> None:
        self._functions.install(module, self._guard)
        if self._with.came_late:
            self._with.recorder.attempt(
                "looking for functions that were traced before", self._know_earlier, module.Function
            )

    def _know_earlier(self, function_class: type) -> None:
        """Find functions that were traced before we came; later ones tell so while traced."""
        for thing in gc.get_objects():
            if issubclass(type(thing), function_class) and _trains(thing):
                self._with.updates.knows(thing)

    def _on_tracing(self, module: Any) -> None:
        name = "func_graph_from_py_func"
        timed = self._with.updates.timed(getattr(module, name), self._guard, self._with.timeline)
        self._guard.replace(module, name, timed)

    def _on_variables(self, module: Any) -> None:
        # TensorFlow itself gives the latter writes of its own later on, around the former's: in a
        # program that has imported all of it, no other are called.
        classes = (module.BaseResourceVariable, module.ResourceVariable)
        watch_writes(classes, self._with.updates, self._guard)

    def _on_replicas(self, module: Any) -> None:
        updates = self._with.updates
        self._guard.tell_before(
            module._MirroredReplicaThread,
            "__init__",
            "telling which steps train",
            lambda thread, *_, **__: updates.begins_replica(thread),
        )

    def _use_at(self, file: str | None, line: int | None) -> OtherUse | None:
        return next((use for use in self._uses if (use.file, use.line) == (file, line)), None)

    def _on_sessions(self, module: Any) -> None:
        what = "counting sessions"
        self._guard.tell_before(module.BaseSession, "run", what, self._note_session)

    def _note_session(self, *_: Any, **__: Any) -> None:
        site = call_site()
        place = (site.file, site.line) if site else (None, None)
        known = self._use_at(*place)
        if known is None:
            self._uses.append(OtherUse("Session.run of TensorFlow 1", place[0], place[1], 1))
        else:
            known.count += 1

    def _on_keras_optimizer(self, module: Any) -> None:
        """Hook into the optimizer, which shows steps that no function runs."""
        owner, what = module.TFOptimizer, "watching eager steps"
        for name in ("_backend_update_step", "_internal_apply_gradients"):
            if name in vars(owner):
                self._guard.tell_before(owner, name, what, self._note_eager_step, vital=True)
                return

    def _note_eager_step(self, *_: Any, **__: Any) -> None:
        if not self._with.updates.busy:
            self._with.steps.eager_step()


_WRITES = (
    "assign assign_add assign_sub scatter_add scatter_sub scatter_update scatter_nd_add "
    "scatter_nd_sub scatter_nd_update batch_scatter_update"
).split()


def watch_writes(classes: Iterable[type], updates: UpdateWatch, guard: Guard) -> None:
    """Note each write of a trainable variable of these classes: the step trains.

    Inside a tf.function these methods run only while it is traced, and mark the function.
    """
    note = updates.note

    def written(variable: Any, *_: Any, **__: Any) -> None:
        if _is_trained(variable):
            note()

    tells = guard.entry("telling which steps train", written)
    for owner, name in product(classes, _WRITES):
        if name in vars(owner):
            guard.replace(owner, name, guard.before(vars(owner)[name], tells))


def _is_trained(variable: Any) -> bool:
    # Counters are made trainable by default too; none of them can be trained.
    return bool(variable.trainable and variable.dtype.is_floating)


def _trains(function: Any) -> bool:
    try:
        traced = function._list_all_concrete_functions()
        return any(
            _is_trained(variable) and variable.handle in written
            for concrete in traced
            for written in [Writes.of(StepGraph(concrete))]
            for variable in concrete.graph.variables
        )
    except Exception:
        return False  # its graph can't be read, or a variable of it is gone


def watch_saving(module: Any, guard: Guard) -> None:
    """Hook onto the module that makes SavedModels: others use them."""
    original = getattr(module, "_build_meta_graph", None)
    if original is None:
        return
    cleans = guard.entry("keeping its own names out of saved models", without_ours)

    def build(*args: Any, **kwargs: Any) -> Any:
        built = original(*args, **kwargs)
        cleans(built[0])
        return built

    guard.replace(module, "_build_meta_graph", guard.hook(original, build))


def without_ours(meta_graph: Any) -> None:
    """Take our names of datasets out of a MetaGraphDef."""
    graph = meta_graph.graph_def
    for nodes in (graph.node, *(function.node_def for function in graph.library.function)):
        for node in nodes:
            if "metadata" in node.attr and NAME_BEGINS.encode() in node.attr["metadata"].s:
                node.attr["metadata"].s = b""
