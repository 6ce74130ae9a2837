"""Recordings as a script's process writes them, for tests; any field can be given another value."""

from __future__ import annotations

from typing import Any

from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import (
    Device,
    ModelNode,
    ModelSnapshot,
    RecordedBlock,
    RecordedEnvironment,
    RecordedFunction,
    RecordedOperation,
    RecordedWindow,
    Recording,
)
from pipediag.vocabulary import WindowKind
from tests.factories import make_keras
from tests.records import MS, SCRIPT


def make_block(
    steps: int = 10,
    step_ms: float = 10.0,
    gap_ms: float | None = 3.0,
    start_ms: float = 4000.0,
    **overrides: Any,
) -> RecordedBlock:
    """Equal steps, one after the other; without gap times where `gap_ms` is None."""
    values: dict[str, Any] = {
        "starts_ns": [round((start_ms + index * step_ms) * MS) for index in range(steps)],
        "durations_ns": [round(step_ms * MS)] * steps,
        "gaps_us": [] if gap_ms is None else [round(gap_ms * 1000)] * steps,
    }
    return RecordedBlock(**{**values, **overrides})


def make_window(
    kind: WindowKind = "baseline", *blocks: RecordedBlock, **overrides: Any
) -> RecordedWindow:
    held = list(blocks) or [make_block()]
    values: dict[str, Any] = {
        "kind": kind,
        "loop_id": "loop1",
        "start_ns": held[0].starts_ns[0],
        "end_ns": held[-1].starts_ns[-1] + held[-1].durations_ns[-1],
        "blocks": held,
    }
    return RecordedWindow(**{**values, **overrides})


def make_recorded_loop(**overrides: Any) -> RecordedLoop:
    values: dict[str, Any] = {
        "id": "loop1",
        "kind": "keras",
        "role": "training",
        "role_reason": "Keras fit",
        "file": SCRIPT,
        "line": 20,
        "function": "<module>",
        "root_op_id": "op3",
        "iterators": 1,
        "steps": 60,
        "elapsed_ns": 1500 * MS,
        "updates_variables": True,
        "started_ns": 2000 * MS,
        "batch_size": 32,
        "planned_steps": 625,
        "first_step_ns": 900 * MS,
        "fill_ns": 50 * MS,
        "trace_count": 1,
        "keras": make_keras(),
    }
    return RecordedLoop(**{**values, **overrides})


def make_recorded_operation(id: str, kind: str, **overrides: Any) -> RecordedOperation:
    values: dict[str, Any] = {
        "id": id,
        "kind": kind,
        "name": f"pipediag_{id}",
        "file": SCRIPT,
        "line": 12,
    }
    return RecordedOperation(**{**values, **overrides})


def make_recorded_function(**overrides: Any) -> RecordedFunction:
    values: dict[str, Any] = {
        "name": "parse",
        "file": SCRIPT,
        "line": 5,
        "stateful": True,
        "graph_ops": {"EagerPyFunc": 1},
        "python_calls": [],
    }
    return RecordedFunction(**{**values, **overrides})


def make_plan() -> list[RecordedOperation]:
    """from_tensor_slices -> map -> batch(32)."""
    return [
        make_recorded_operation("op1", "from_tensor_slices", line=10),
        make_recorded_operation(
            "op2", "map", line=12, parent_ids=["op1"], function=make_recorded_function()
        ),
        make_recorded_operation(
            "op3", "batch", line=13, parent_ids=["op2"], parameters={"batch_size": 32}
        ),
    ]


def make_node(
    id: int, name: str, inputs: list[int], num_elements: int = 0, processing_time_ns: int = 0
) -> ModelNode:
    return ModelNode(id, name, inputs, num_elements, processing_time_ns, 0, 0, autotune=True)


def make_snapshot(batches: int, **overrides: Any) -> ModelSnapshot:
    """Root <- Prefetch <- MapAndBatch <- TensorSlice after so many batches of 32.

    A batch takes 9 ms in the fused map, whose elements have 128 bytes, and 0.64 ms in the source.
    """
    root = make_node(1, "Root", [2], batches)
    ahead = make_node(2, "Prefetch", [3], batches, batches * 10_000)
    ahead.buffer_size, ahead.buffer_size_tunable = 2, True
    fused = make_node(3, "MapAndBatch", [4], batches, batches * 9 * MS)
    fused.bytes_produced = batches * 32 * 128
    fused.parallelism, fused.parallelism_tunable = 1, False
    source = make_node(4, "TensorSlice", [], 32 * batches, batches * 640_000)
    values: dict[str, Any] = {
        "loop_id": "loop1",
        "iterator": 1,
        "iterator_steps": batches,
        "output_id": 1,
        "nodes": [root, ahead, fused, source],
    }
    return ModelSnapshot(**{**values, **overrides})


def make_recording(**overrides: Any) -> Recording:
    """Warm-up: 10 steps of 20 ms; baseline: 40 of 10 ms, gaps of 3 ms; repeat: 20 of 3 ms."""
    values: dict[str, Any] = {
        "pid": 100,
        "started_ns": 1000 * MS,
        "outcome": "stopped",
        "environment": RecordedEnvironment(
            python="3.11.9",
            tensorflow="2.21.0",
            keras="3.15.1",
            keras_backend="tensorflow",
            cuda_build=False,
            devices=[Device("/device:CPU:0", "CPU")],
        ),
        "operations": make_plan(),
        "loops": [make_recorded_loop()],
        "windows": [
            make_window("warmup", make_block(10, 20.0, None, 3000.0), stable=True),
            make_window("baseline", *(make_block(start_ms=4000.0 + 100 * i) for i in range(4))),
            make_window("repeat", make_block(20, 3.0, None, 5000.0)),
        ],
        "snapshots": [make_snapshot(10), make_snapshot(50)],
    }
    return Recording(**{**values, **overrides})
