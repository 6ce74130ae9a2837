"""Steps and pipelines of sessions, for tests; any field can be given another value."""

from __future__ import annotations

from typing import Any

from pipediag.session.loops import InputWait, Share, Steps
from pipediag.session.model import Environment
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.session.recording import Device, RecordedFunction
from pipediag.vocabulary import StepClass

SCRIPT = "train.py"
MS = 1_000_000


def make_environment(**overrides: Any) -> Environment:
    values: dict[str, Any] = {
        "python": "3.11.9",
        "tensorflow": "2.21.0",
        "keras": "3.15.1",
        "keras_backend": "tensorflow",
        "cpu_model": "Example CPU",
        "cores": 2,
        "cpu_quota": None,
        "memory_bytes": 8 * 2**30,
        "devices": [Device(name="/device:CPU:0", kind="CPU")],
        "cuda_build": False,
        "platform": "Linux-x86_64",
        "fingerprint": "0123456789abcdef",
    }
    return Environment(**{**values, **overrides})


def make_steps(**overrides: Any) -> Steps:
    values: dict[str, Any] = {
        "count": 40,
        "warmup_count": 10,
        "mean_ms": 10.0,
        "median_ms": 10.0,
        "p95_ms": 10.5,
        "ci95_ms": (9.9, 10.1),
        "examples_per_s": 3200.0,
        "batch_size": 32,
        "first_step_ms": 900.0,
        "fill_ms": 50.0,
        "trace_count": 1,
        "samples_ms": [10.0] * 40,
    }
    return Steps(**{**values, **overrides})


def make_breakdown(
    step_ms: float = 10.0, *, off: float = 1.0, **percents: float
) -> dict[StepClass, Share]:
    """A breakdown from percents; what they leave of 100 is unattributed.

    Each may be `off` by so many percent points.
    """
    given: dict[str, float] = percents or {
        "input_wait": 70.0,
        "device_compute": 20.0,
        "dispatch": 6.0,
        "python": 3.0,
    }
    names: tuple[StepClass, ...] = (
        "input_wait",
        "device_compute",
        "device_copy",
        "collective",
        "compile",
        "dispatch",
        "python",
        "device_wait",
        "unattributed",
    )
    full = {name: given.get(name, 0.0) for name in names}
    full["unattributed"] += 100.0 - sum(full.values())
    return {
        name: Share(
            ms=step_ms * percent / 100.0,
            percent=percent,
            ci95_percent=(max(0.0, percent - off), min(100.0, percent + off)),
        )
        for name, percent in full.items()
    }


def make_input_wait(**overrides: Any) -> InputWait:
    values: dict[str, Any] = {
        "native_percent": 70.0,
        "native_ci95_percent": (69.0, 71.0),
        "trace_percent": 68.0,
        "method": "native",
        "disagreement": None,
    }
    return InputWait(**{**values, **overrides})


def make_function(**overrides: Any) -> RecordedFunction:
    values: dict[str, Any] = {
        "name": "parse",
        "file": SCRIPT,
        "line": 5,
        "stateful": False,
        "graph_ops": {"Mul": 1},
    }
    return RecordedFunction(**{**values, **overrides})


def make_operation(id: str = "map_0", kind: str = "map", **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "id": id,
        "kind": kind,
        "name": f"pipediag_{id}",
        "file": SCRIPT,
        "line": 12,
        "parent_ids": [],
        "elements": 1.0,
        "self_ms_per_step": 0.1,
        "bytes_per_element": 128.0,
        "parallelism": None,
        "autotuned": None,
        "buffered_elements": None,
        "buffer_size": None,
        "inserted_by_tensorflow": False,
    }
    return Operation(**{**values, **overrides})


def make_pipeline_ops() -> list[Operation]:
    """from_tensor_slices -> map (serial, stateful, 9 ms a step) -> batch(32) -> prefetch."""
    return [
        make_operation(
            "from_tensor_slices_0", "from_tensor_slices", line=10, elements=32.0, cardinality=10000
        ),
        make_operation(
            "map_0",
            "map",
            line=12,
            parent_ids=["from_tensor_slices_0"],
            elements=32.0,
            self_ms_per_step=9.0,
            latency_ms_per_step=9.0,
            parallelism=1,
            autotuned=False,
            code="ds = ds.map(parse)",
            function=make_function(
                stateful=True,
                graph_ops={"EagerPyFunc": 1},
                python_function_names=["train.py:5 parse"],
            ),
        ),
        make_operation(
            "batch_0", "batch", line=13, parent_ids=["map_0"], parameters={"batch_size": 32}
        ),
        make_operation(
            "tf_prefetch_0",
            "prefetch",
            name=None,
            file=None,
            line=None,
            parent_ids=["batch_0"],
            inserted_by_tensorflow=True,
            autotuned=True,
            buffer_size=2,
            buffered_elements=0.1,
        ),
    ]


def make_pipeline(**overrides: Any) -> Pipeline:
    values: dict[str, Any] = {"ops": make_pipeline_ops(), "bottleneck_op_id": "map_0"}
    return Pipeline(**{**values, **overrides})
