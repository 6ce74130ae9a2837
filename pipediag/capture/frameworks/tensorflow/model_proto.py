"""tf.data's own model of a running iterator: gap times and per-operation counters, no profiler.

TensorFlow hands it out from 2.17 on.
"""

from __future__ import annotations

import sys
from typing import Any

from pipediag.capture.runtime import IteratorModel
from pipediag.session.recorded_model import ModelNode

NO_MODELS = (
    "This TensorFlow has no model of a running pipeline, so input wait comes from the time in "
    "`next`, a repeated batch or the profile, and what an operation costs from the profile alone."
)
_OPERATIONS = "tensorflow.python.ops.gen_experimental_dataset_ops"


def tensorflow_has_models() -> bool:
    """Whether the TensorFlow that the script imported hands out models at all."""
    return hasattr(sys.modules.get(_OPERATIONS), "iterator_get_model_proto")


def read_model(iterator: Any) -> IteratorModel | None:
    """The iterator's model; None where autotune is off, or for a distributed iterator."""
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
    """The model of an iterator, or of the one behind a distributed one where there is just one."""
    for single in _single_iterators(iterator):
        return read_model(single)
    return None


def _single_iterators(iterator: Any) -> list[Any]:
    if iterator is None:
        return []
    inner = getattr(iterator, "_iterators", None)
    if inner is None:
        return [iterator]
    owned = [getattr(one, "_iterator", None) for one in inner]
    return [owned[0]] if len(owned) == 1 and owned[0] is not None else []


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
        bytes_consumed=node.bytes_consumed,
        buffered_elements=node.buffered_elements,
        buffered_bytes=node.buffered_bytes,
        autotune=node.autotune,
        parallelism=int(parallelism.state_value) if parallelism else None,
        parallelism_tunable=parallelism.tunable if parallelism else None,
        buffer_size=int(buffer_size.state_value) if buffer_size else None,
        buffer_size_tunable=buffer_size.tunable if buffer_size else None,
    )
