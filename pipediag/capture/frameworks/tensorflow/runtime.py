"""Steps of TensorFlow on batches of tf.data, and facts about datasets."""

from __future__ import annotations

import gc
import glob
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipediag.capture.callsites import stacks
from pipediag.capture.frameworks.tensorflow.tables.traced_step import TracedTables
from pipediag.capture.replay.elements import dataset_of, unobserved
from pipediag.capture.runtime import IteratorModel
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import ModelNode, RecordedOperation
from pipediag.vocabulary import Scalar

# Reading this alias of `threading` makes TensorFlow warn the user.
_DEPRECATED_OPTION = "experimental_threading"


def original_of(dataset: Any) -> Any:
    """Return a dataset's last operation, as the plan knows it, or None.

    A strategy's is known by the one that it distributes.
    """
    original = getattr(dataset, "_original_dataset", dataset)
    of_function = getattr(dataset, "_datasets", None)
    if of_function is not None and len(of_function) == 1:
        [original] = of_function
    return original if hasattr(original, "_inputs") else None


def describe_dataset(dataset: Any, record: RecordedLoop) -> Any:
    """Note what a dataset knows of itself; return its last operation, as `original_of`."""
    original = original_of(dataset)
    record.element_spec = str(dataset.element_spec)
    strategy = getattr(dataset, "_strategy", None)
    if strategy is not None:
        record.replicas = strategy.num_replicas_in_sync
        record.strategy = type(strategy).__name__
    if original is None:
        return None
    record.dataset_options = _options_of(original.options())
    record.autotune_enabled = record.dataset_options.get("autotune.enabled") is not False
    return original


def _options_of(options: Any, within: str = "") -> dict[str, Scalar]:
    """Return the options that the user set, flattened: `threading.private_threadpool_size`, ..."""
    found: dict[str, Scalar] = {}
    for name in type(options).__dict__:
        if name.startswith("_") or name == _DEPRECATED_OPTION:
            continue
        value = getattr(options, name, None)
        if isinstance(value, bool | int | float | str):
            found[within + name] = value
        elif not within and "tensorflow" in type(value).__module__:
            found.update(_options_of(value, f"{name.removeprefix('experimental_')}."))
    return found


def batch_rows(batch: Any) -> int | None:
    """Return the leading dimension of a batch's first tensor that is no variable, or None."""
    nest = sys.modules["tensorflow.python.util.nest"]
    for component in nest.flatten(batch):
        shape = None if hasattr(component, "assign") else getattr(component, "shape", None)
        if shape is not None and len(shape) > 0 and shape[0] is not None:
            return int(shape[0])
    return None


NO_MODELS = (
    "This TensorFlow has no model of a running pipeline, so input wait comes from the time in "
    "`next`, a repeated batch or the profile, and what an operation costs from the profile alone."
)
_OPERATIONS = "tensorflow.python.ops.gen_experimental_dataset_ops"


def tensorflow_has_models() -> bool:
    """Return True from TensorFlow 2.17 on."""
    return hasattr(sys.modules.get(_OPERATIONS), "iterator_get_model_proto")


def model_of(iterator: Any) -> IteratorModel | None:
    """Return tf.data's own model of a running iterator: gap times and counters, without a profiler.

    None where autotune is off, or for a distributed iterator with several behind it.
    """
    from tensorflow.core.framework import model_pb2
    from tensorflow.python.eager import context
    from tensorflow.python.framework import errors

    behind = getattr(iterator, "_iterators", None)
    if behind is not None:
        iterator = getattr(behind[0], "_iterator", None) if len(behind) == 1 else None
    resource = getattr(iterator, "_iterator_resource", None)
    if resource is None or not tensorflow_has_models() or not context.executing_eagerly():
        return None
    try:
        serialised = sys.modules[_OPERATIONS].iterator_get_model_proto(resource).numpy()
    except errors.OpError:
        return None
    proto = model_pb2.ModelProto.FromString(serialised)
    nodes = [_node(node) for node in proto.nodes.values()]
    return IteratorModel(list(proto.gap_times), nodes, proto.output)


def _node(node: Any) -> ModelNode:
    # `state_value` is what runs; `value` is the optimiser's copy and was seen to lag behind.
    parameters = {parameter.name: parameter for parameter in node.parameters}
    parallelism = parameters.get("parallelism")
    buffer_size = parameters.get("buffer_size")
    return ModelNode(
        id=node.id,
        name=node.name,
        inputs=list(node.inputs),
        num_elements=node.num_elements,
        processing_time_ns=node.processing_time,
        bytes_produced=node.bytes_produced,
        buffered_elements=node.buffered_elements,
        autotune=node.autotune,
        parallelism=int(parallelism.state_value) if parallelism else None,
        parallelism_tunable=parallelism.tunable if parallelism else None,
        buffer_size=int(buffer_size.state_value) if buffer_size else None,
        buffer_size_tunable=buffer_size.tunable if buffer_size else None,
    )


def settled_ns(now_ns: int, devices: Sequence[str] | None = None) -> int:
    """Return when accelerators had done all work launched by now; `now_ns` without accelerators.

    They work behind Python's back. By default all of them are waited for.
    """
    from tensorflow.python.eager import context
    from tensorflow.python.framework import config, ops
    from tensorflow.python.ops import gen_sync_ops

    if devices is None:
        devices = [device.name for device in config.list_logical_devices("GPU")]
    if not devices:
        return now_ns
    for device in devices:
        with ops.device(device):
            gen_sync_ops.SyncDevice()
    context.async_wait()
    return time.monotonic_ns()


def handles_of(iterators: Iterable[Any]) -> list[Any]:
    """Return the handles of TensorFlow's iterators; nothing of others."""
    return [
        handle
        for iterator in iterators
        for name in _HANDLES
        if type(handle := getattr(iterator, "__dict__", {}).get(name)).__name__ in _EAGER
    ]


class TensorFlowRuntime:
    """Runs steps; it imports what it needs when it is asked. TensorFlow is there by then."""

    def __init__(self) -> None:
        self.pull: Callable[[Any], Any] = next
        """Returns the next batch of an iterator, unseen by hooks. See `is_end_of_data`."""

    rows = staticmethod(batch_rows)
    original_of = staticmethod(original_of)
    describe_dataset = staticmethod(describe_dataset)
    model_of = staticmethod(model_of)
    handles_of = staticmethod(handles_of)
    unobserved = staticmethod(unobserved)
    step_tables = TracedTables
    settled_ns = staticmethod(settled_ns)

    def handing_out(self, batch: Any, element_spec: Any, times: int | None = None) -> Any:
        """Return an iterator that hands out `batch` so often, or for ever, at next to no cost."""
        # The same spec keeps a tf.function that takes the iterator from being traced again.
        return unobserved(_without_threads(dataset_of([batch], element_spec).repeat(times)))

    def not_handed_once(self, iterator: Any, element_spec: Any) -> str | None:
        """Return a sentence if a batch of it can't be handed out by another iterator."""
        from tensorflow.python.framework import sparse_tensor, tensor
        from tensorflow.python.ops.ragged import ragged_tensor
        from tensorflow.python.util import nest

        kinds = (tensor.TensorSpec, ragged_tensor.RaggedTensorSpec, sparse_tensor.SparseTensorSpec)
        if not all(isinstance(one, kinds) for one in nest.flatten(element_spec)):
            return "A batch holds other things than tensors."
        resource = getattr(iterator, "_iterator_resource", None)
        if "CPU" not in (getattr(resource, "device", None) or ""):
            return "Batches are handed out on another device than the CPU."
        return None

    @property
    def no_models(self) -> str | None:
        return None if tensorflow_has_models() else NO_MODELS

    def other_processes(self) -> str | None:
        """Return what shows that other workers take part in each step, as a strategy may have."""
        module = sys.modules.get("tensorflow.python.eager.context")
        context = module.context() if module is not None else None
        names = ("_server_def", "_collective_ops_server_def")
        known = (getattr(context, name, None) for name in names)
        jobs = [one.cluster.job for one in known if one is not None]
        tasks = max((sum(len(job.tasks) for job in each) for each in jobs), default=1)
        return f"TensorFlow is connected to a cluster of {tasks} tasks" if tasks > 1 else None


def _without_threads(dataset: Any) -> Any:
    """Switch off optimisations and autotune, so that no thread prefetches meanwhile."""
    from tensorflow.python.data.ops import options

    choices = options.Options()
    choices.experimental_optimization.apply_default_optimizations = False
    choices.autotune.enabled = False
    return dataset.with_options(choices)


# Pipelines that run, and caches that are being filled, when the script is stopped or over.

IN_FLIGHT_LIMIT_S = 2.0
"""Longest time for which a Python function that a pipeline has called is waited for."""

_POLL_S = 0.005
_HANDLES = ("_iterator_resource", "_multi_device_iterator_resource", "_resource_deleter")
_EAGER = ("EagerTensor", "EagerResourceDeleter")
"""Names of handles that stand for a pipeline. Others stand for iterators in functions that were
traced; no pipeline is behind them."""


def handles_of_live_iterators() -> list[Any]:
    """Return the handles of running iterators, to be kept until the process is gone.

    An iterator that goes waits for the thread that tunes it, up to a minute and with the GIL. To
    keep the iterator itself would keep the data set, its functions and their module.
    """
    return handles_of(
        _instances(
            ("tensorflow.python.data.ops.iterator_ops", "OwnedIterator"),
            ("tensorflow.python.data.ops.multi_device_iterator_ops", "OwnedMultiDeviceIterator"),
            ("tensorflow.python.data.ops.multi_device_iterator_ops", "MultiDeviceIterator"),
        )
    )


def live_sessions() -> list[Any]:
    """Return TensorFlow 1 sessions, behind which pipelines may run that Python does not see."""
    return _instances(("tensorflow.python.client.session", "BaseSession"))


def park_python_functions() -> None:
    """Let pipelines wait for good where they call Python next, as the script's modules will go."""
    script_ops = sys.modules.get("tensorflow.python.ops.script_ops")
    registry = getattr(script_ops, "FuncRegistry", None)
    if registry is None:
        return
    call, leaving = registry.__call__, threading.get_ident()
    gate = threading.Lock()
    gate.acquire()

    def wait_for_good(functions: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == leaving:
            return call(functions, *args, **kwargs)
        return gate.acquire()

    registry.__call__ = wait_for_good
    give_up_at = time.monotonic() + IN_FLIGHT_LIMIT_S
    while time.monotonic() < give_up_at and any(
        code is call.__code__
        for thread, stack in stacks().items()
        for code, _ in stack
        if thread != leaving
    ):
        time.sleep(_POLL_S)


def _instances(*classes: tuple[str, str]) -> list[Any]:
    kinds = tuple(
        kind
        for module, name in classes
        if (kind := getattr(sys.modules.get(module), name, None)) is not None
    )
    return [thing for thing in gc.get_objects() if kinds and issubclass(type(thing), kinds)]


_OF_A_WRITER = re.compile(r"_\d+\.(lockfile|index|data-\d+-of-\d+)\S*")


def remove_cut_caches(operations: Iterable[RecordedOperation], began_s: float) -> None:
    """Remove what this process has written since `began_s` of caches in files, if not complete.

    TensorFlow does so when the cache's iterator goes. One that is kept until the process is gone
    would leave a lock, by which the script's next run dies.
    """
    for operation in operations:
        name = operation.parameters.get("filename")
        if operation.kind != "cache" or not isinstance(name, str) or not name:
            continue
        if Path(f"{name}.index").exists():
            continue  # complete
        for path in glob.glob(f"{glob.escape(name)}_*"):  # noqa: PTH207 - a prefix, not a folder
            of_a_writer = _OF_A_WRITER.fullmatch(path[len(name) :])
            with suppress(OSError):
                if of_a_writer and Path(path).stat().st_mtime >= began_s:
                    Path(path).unlink()
