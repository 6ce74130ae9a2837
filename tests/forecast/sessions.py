"""Sessions to forecast from."""

from __future__ import annotations

from typing import Any

from pipediag.session.edits import (
    AUTOTUNE,
    Change,
    Edit,
    SetParameters,
)
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_session
from tests.records import (
    make_function,
    make_operation,
    make_pipeline,
    make_pipeline_ops,
)

PARALLEL = SetParameters("map_0", {"num_parallel_calls": AUTOTUNE})
FACTOR = 10 / 9.2
"""The factories' stage: source 0.1, map 9 and batch 0.1 ms by tf.data's clock, 10 ms in truth."""
IDLE = make_host(cores_busy=0.0, threads={})


def edit(*changes: Change) -> Edit:
    return Edit(id="rule:map_0", label="an edit", changes=changes)


def stateless_ops() -> list[Operation]:
    source, mapped, batch, prefetch = make_pipeline_ops()
    return [source, mapped.model_copy(update={"function": make_function()}), batch, prefetch]


def stateless(**overrides: Any) -> Session:
    return make_session(**{"pipeline": make_pipeline(ops=stateless_ops()), **overrides})


def fused(**overrides: Any) -> Session:
    """source 1 ms -> MapAndBatch 8 ms with one call, 32 elements a step."""
    ops = [
        make_operation("source", "from_tensor_slices", elements=32.0, self_ms_per_step=1.0),
        make_operation(
            "map",
            parent_ids=["source"],
            elements=32.0,
            self_ms_per_step=8.0,
            parallelism=1,
            function=make_function(),
            iterator_name="MapAndBatch",
            fused_from=["batch"],
        ),
        make_operation(
            "batch",
            "batch",
            parent_ids=["map"],
            elements=None,
            self_ms_per_step=None,
            fused_into="map",
            parameters={"batch_size": 32},
        ),
    ]
    return make_session(**{"pipeline": make_pipeline(ops=ops), "host": IDLE, **overrides})
