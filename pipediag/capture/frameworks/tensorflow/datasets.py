"""What a tf.data dataset, its batches and its running iterators tell of themselves."""

from __future__ import annotations

import math
import sys
from typing import Any

from pipediag.capture.runtime import DatasetFacts, IteratorModel
from pipediag.session.recording import ModelNode
from pipediag.vocabulary import Scalar

# Reading this alias of `threading` makes TensorFlow warn the user.
_DEPRECATED_OPTION = "experimental_threading"


def facts_of(dataset: Any) -> DatasetFacts:
    """Return what it tells of itself; a strategy's dataset is known by the one that it
    distributes."""
    original = getattr(dataset, "_original_dataset", dataset)
    strategy = getattr(dataset, "_strategy", None)
    replicas = strategy.num_replicas_in_sync if strategy is not None else 1
    name = type(strategy).__name__ if strategy is not None else None
    spec = str(dataset.element_spec)
    if not hasattr(original, "_inputs"):
        return DatasetFacts(spec, replicas, strategy=name)
    return DatasetFacts(spec, replicas, original, _options_of(_known_options(original)), name)


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


def _known_options(dataset: Any) -> Any:
    """Return its options; those given in Python for a dataset that a graph makes: asking it while
    the graph is built would make TensorFlow warn the user."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops

    with ops.init_scope():
        if context.executing_eagerly() and isinstance(dataset._variant_tensor, ops.EagerTensor):
            return dataset.options()
    return dataset._options_attr


_ROWS, _LENGTH, _STRING = 1024, 512, 64
"""Assumed where a spec leaves them open: rows, each other length, bytes of a string. Own choice, on
the large side."""


def batch_bytes(element_spec: Any) -> int:
    """Return about how many bytes a batch takes, by its spec."""
    nest = sys.modules["tensorflow.python.util.nest"]
    total = 0
    for spec in nest.flatten(element_spec, expand_composites=True):
        if not hasattr(spec, "shape"):
            continue  # a None
        sizes = spec.shape.as_list() if spec.shape.rank is not None else [None, None]
        known = [
            size if size is not None else _LENGTH if place else _ROWS
            for place, size in enumerate(sizes)
        ]
        total += math.prod(known) * (spec.dtype.size or _STRING)
    return total


def batch_rows(batch: Any) -> int | None:
    """Return the leading dimension of a batch's first tensor, or None."""
    nest = sys.modules["tensorflow.python.util.nest"]
    for component in nest.flatten(batch):
        shape = getattr(component, "shape", None)
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


def read_model(iterator: Any) -> IteratorModel | None:
    """Return tf.data's own model of a running iterator: gap times and counters, without a profiler.

    None where autotune is off, or for a distributed iterator.
    """
    from tensorflow.core.framework import model_pb2
    from tensorflow.python.eager import context
    from tensorflow.python.framework import errors

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


def model_of(iterator: Any) -> IteratorModel | None:
    """Return the model of an iterator, or of the only one behind a distributed iterator."""
    behind = getattr(iterator, "_iterators", None)
    if behind is not None:
        iterator = getattr(behind[0], "_iterator", None) if len(behind) == 1 else None
    return None if iterator is None else read_model(iterator)


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
