"""tf.data's own model of a running iterator: gap times and per-operation counters, no profiler."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from pipediag.session.recording import ModelNode, ModelSnapshot


@dataclass(frozen=True)
class IteratorModel:
    """`gaps_us`: the consumer's time between get_next calls, oldest first, the last 100 at most."""

    gaps_us: list[int]
    nodes: list[ModelNode]
    output_id: int


def read_model(iterator: Any) -> IteratorModel | None:
    """The iterator's model; None where autotune is off, or for a distributed iterator."""
    from tensorflow.python.data.experimental.ops import iterator_model_ops
    from tensorflow.python.framework import errors

    try:
        proto = iterator_model_ops.get_model_proto(iterator)
    except (errors.OpError, ValueError):
        return None
    nodes = [_node(node) for node in proto.nodes.values()]
    return IteratorModel(list(proto.gap_times), nodes, proto.output)


def snapshot(
    model: IteratorModel, loop_id: str, iterator: int, steps: int, iterator_steps: int
) -> ModelSnapshot:
    """A reading to keep; the difference of two gives rates."""
    return ModelSnapshot(
        loop_id=loop_id,
        iterator=iterator,
        at_ns=time.monotonic_ns(),
        steps=steps,
        iterator_steps=iterator_steps,
        nodes=model.nodes,
        output_id=model.output_id,
    )


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
