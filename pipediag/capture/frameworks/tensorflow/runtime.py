"""How TensorFlow runs steps on batches of tf.data's."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pipediag.capture.frameworks.tensorflow import datasets
from pipediag.capture.frameworks.tensorflow.tables.eager_steps import EagerSteps
from pipediag.capture.frameworks.tensorflow.tables.traced_step import TracedTables
from pipediag.capture.runtime import Cancellation, Clock, StepTables

_MOST_HELD = 256_000_000
"""Bytes of batches that are drawn ahead of one call. Own choice: about what a pipeline that draws
ahead holds by itself."""


class TensorFlowRuntime:
    """Imports what it needs when it is asked: TensorFlow is there by then."""

    def __init__(self) -> None:
        self.advance: Callable[[Any], Any] = next
        """The original of what is hooked, once it is."""

    rows = staticmethod(datasets.batch_rows)
    describe_dataset = staticmethod(datasets.facts_of)
    model_of = staticmethod(datasets.model_of)

    def pull(self, iterator: Any) -> Any:
        return self.advance(iterator)

    def repeated(self, batch: Any, element_spec: Any) -> Any:
        # The same spec keeps a tf.function that takes the iterator from being traced again.
        return _unobserved_iterator(_without_threads(_once(batch).repeat()), element_spec)

    def handed_once(self, batches: Sequence[Any], element_spec: Any) -> Any:
        dataset = _once(batches[0])
        for batch in batches[1:]:  # their shapes may differ
            dataset = dataset.concatenate(_once(batch))
        return _unobserved_iterator(_without_threads(dataset), element_spec)

    def not_handed_once(self, iterator: Any, element_spec: Any, batches: int) -> str | None:
        if batches > 1 and batches * datasets.batch_bytes(element_spec) > _MOST_HELD:
            return f"A call takes {batches} batches, which may be too large to be held."
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

    def unobserved(self, dataset: Any) -> Any:
        return _unobserved_iterator(dataset, dataset.element_spec)

    def step_tables(self, functions: Sequence[Any]) -> StepTables:
        return TracedTables(functions)

    def eager_steps(self) -> EagerSteps:
        return EagerSteps()

    @property
    def no_models(self) -> str | None:
        return None if datasets.tensorflow_has_models() else datasets.NO_MODELS

    def cancellation(self) -> Cancellation:
        return CallCancellation()

    def clock(self) -> Clock:
        return DeviceClock()

    def other_processes(self) -> str | None:
        return _tasks_by_config() or _tasks_by_context()


def _once(batch: Any) -> Any:
    from tensorflow.python.data.ops import dataset_ops

    return dataset_ops.DatasetV2.from_tensors(batch)


def _without_threads(dataset: Any) -> Any:
    """Switch off optimisations and autotune, so that no thread prefetches beside the consumer."""
    from tensorflow.python.data.ops import options

    choices = options.Options()
    choices.experimental_optimization.apply_default_optimizations = False
    choices.autotune.enabled = False
    return dataset.with_options(choices)


def _unobserved_iterator(dataset: Any, element_spec: Any) -> Any:
    """Return an iterator that the hooks take for none of the script's."""
    from tensorflow.python.data.ops import dataset_ops, iterator_ops

    return iterator_ops.OwnedIterator(dataset_ops._RestructuredDataset(dataset, element_spec))


class DeviceClock:
    """Says when accelerators have done their work, which they do behind Python's back."""

    def __init__(self, devices: Sequence[str] | None = None) -> None:
        self._devices = _accelerators() if devices is None else list(devices)

    def settled_ns(self, now_ns: int) -> int:
        if not self._devices:
            return now_ns
        from tensorflow.python.eager import context
        from tensorflow.python.framework import ops
        from tensorflow.python.ops import gen_sync_ops

        for device in self._devices:
            with ops.device(device):
                gen_sync_ops.SyncDevice()
        context.async_wait()
        return time.monotonic_ns()


def _accelerators() -> list[str]:
    from tensorflow.python.framework import config

    return [device.name for device in config.list_logical_devices("GPU")]


_NO_CONTEXT = (
    "This TensorFlow has no way to cancel a tf.function that is running, so a loop inside one goes "
    "on to its end after it was measured."
)
_SCRIPTS_OWN = (
    "The script can cancel its tf.function itself, which is left alone, so the loop inside it goes "
    "on to its end after it was measured."
)


class CallCancellation:
    """Ends one call of a tf.function, made inside `context`, from another thread.

    The context that this takes came with TensorFlow 2.13.
    """

    def __init__(self) -> None:
        from tensorflow.python.eager import cancellation

        self.lack: str | None = None
        self.started = False
        self.context: AbstractContextManager[Any] = nullcontext()
        if not hasattr(cancellation, "CancellationManagerContext"):
            self.lack = _NO_CONTEXT
        elif cancellation.context() is not None:
            self.lack = _SCRIPTS_OWN
        else:
            self._manager = cancellation.CancellationManager()
            self.context = cancellation.CancellationManagerContext(self._manager)

    def start(self) -> None:
        """Cancel the call, which then raises CancelledError, or ends as if its data had ended."""
        self.started = True
        self._manager.start_cancel()


_TRAINING_JOBS = ("chief", "master", "worker", "ps")
"""An evaluator reads what the others have saved, and waits for none of their steps."""


def _tasks_by_config() -> str | None:
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        if config.get("task", {}).get("type") == "evaluator":
            return None
        jobs = config.get("cluster", {})
        tasks = sum(len(jobs[job]) for job in _TRAINING_JOBS if job in jobs)
    except (ValueError, TypeError, AttributeError):
        return None  # another form than TensorFlow's, which would refuse it
    return f"TF_CONFIG names {tasks} tasks" if tasks > 1 else None


def _tasks_by_context() -> str | None:
    """Look at the servers: a strategy over several workers connects to them, however it knows
    them."""
    module = sys.modules.get("tensorflow.python.eager.context")
    context = module.context() if module is not None else None
    known = (getattr(context, name, None) for name in ("_server_def", "_collective_ops_server_def"))
    tasks = max(
        (sum(len(job.tasks) for job in one.cluster.job) for one in known if one is not None),
        default=1,
    )
    return f"TensorFlow is connected to a cluster of {tasks} tasks" if tasks > 1 else None
