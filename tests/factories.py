"""Hand-made recordings and sessions, small enough to check by eye.

Session and recording tell of one input-bound Keras `fit`: a 10 ms step of which 7 ms are input
wait, a serial stateful map at `train.py:12` behind it, and a consumer that would need 3 ms by
itself.
"""

from __future__ import annotations

from typing import Any

from pipediag.session.devices import DeviceActivity, DeviceGap
from pipediag.session.findings import Finding, Verdict
from pipediag.session.host import Host, HostSample, HotLine
from pipediag.session.loops import Embedding, KerasUse, Loop, LoopTime
from pipediag.session.model import SCHEMA_VERSION, Session
from pipediag.session.pipeline import Operation, OperationFunction, Pipeline
from pipediag.session.run import Device, Environment, Script
from pipediag.session.steps import (
    Ceiling,
    Differential,
    InputWait,
    Perturbation,
    Share,
    StepRow,
    Steps,
    Window,
)
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


def make_breakdown(step_ms: float = 10.0, **percents: float) -> dict[StepClass, Share]:
    """A breakdown from percents; what they leave of 100 is unattributed."""
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
            ci95_percent=(max(0.0, percent - 1.0), min(100.0, percent + 1.0)),
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


def make_function(**overrides: Any) -> OperationFunction:
    values: dict[str, Any] = {
        "name": "parse",
        "file": SCRIPT,
        "line": 5,
        "stateful": False,
        "graph_ops": {"Mul": 1},
    }
    return OperationFunction(**{**values, **overrides})


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
        "cpu_ms_per_step": None,
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
            iterator_name="Prefetch",
        ),
    ]


def make_pipeline(**overrides: Any) -> Pipeline:
    values: dict[str, Any] = {"ops": make_pipeline_ops(), "bottleneck_op_id": "map_0"}
    return Pipeline(**{**values, **overrides})


def make_keras(**overrides: Any) -> KerasUse:
    values: dict[str, Any] = {
        "model": "Sequential",
        "optimizer": "Adam",
        "loss": "mse",
        "run_eagerly": False,
        "jit_compile": False,
        "steps_per_execution": 1,
        "epochs": 2,
        "steps_per_epoch": None,
        "data_adapter": "TFDatasetAdapter",
        "source": "_BatchDataset",
        "workers": None,
        "use_multiprocessing": None,
        "parameter_count": 1000,
    }
    return KerasUse(**{**values, **overrides})


def make_loop(**overrides: Any) -> Loop:
    values: dict[str, Any] = {
        "id": "loop_0",
        "kind": "keras",
        "role": "training",
        "role_reason": "Keras fit",
        "diagnosed": True,
        "file": SCRIPT,
        "line": 20,
        "function": "<module>",
        "steps": 60,
        "elapsed_s": 1.5,
        "median_step_ms": 10.0,
        "projected_s": 6.25,
        "batch_size": 32,
        "planned_steps": 625,
        "updates_variables": True,
        "keras": make_keras(),
    }
    return Loop(**{**values, **overrides})


def make_loop_time(**overrides: Any) -> LoopTime:
    """A loop of which 80 % is waiting for first batches, by twelve epochs of 20 steps."""
    values: dict[str, Any] = {
        "basis": "projected",
        "total_s": 20.0,
        "steps_s": 3.0,
        "step_ms": 10.0,
        "first_batches_s": 16.0,
        "between_epochs_s": 1.0,
        "unexplained_s": 0.0,
        "epoch_ends_seen": 4,
        "first_batch_ms": 1600.0,
    }
    return LoopTime(**{**values, **overrides})


def make_host(**overrides: Any) -> Host:
    values: dict[str, Any] = {
        "cpu_percent": 60.0,
        "cores_busy": 1.2,
        "cores_allowed": 2.0,
        "threads": {"tf_data": 95.0, "eigen": 10.0, "python_main": 12.0, "others": 3.0},
        "rss_bytes": 600 * 2**20,
        "rss_peak_bytes": 650 * 2**20,
        "available_bytes": 4 * 2**30,
        "io_wait_percent": 0.0,
        "read_bytes_per_s": 0.0,
        "hot_python": [
            HotLine(file=SCRIPT, line=6, function="parse", percent=80.0, thread="source")
        ],
        "lock_percent": 5.0,
        "python_source_cpu_ms_per_step": 8.0,
        "samples": 20,
    }
    return Host(**{**values, **overrides})


def make_device(**overrides: Any) -> DeviceActivity:
    values: dict[str, Any] = {
        "name": "CPU",
        "kind": "cpu",
        "span_ms": 100.0,
        "busy_ms": 20.0,
        "idle_ms": 80.0,
        "busy_percent": 20.0,
        "idle_percent": 80.0,
        "longest_gap_ms": 8.0,
        "noise_ms": 0.5,
        "gaps": [
            DeviceGap(
                start_ms=2.0,
                duration_ms=8.0,
                cause="input",
                op_id="map_0",
                file=SCRIPT,
                line=12,
            )
        ],
    }
    return DeviceActivity(**{**values, **overrides})


def make_finding(rule: str = "serial-stateful-map", **overrides: Any) -> Finding:
    values: dict[str, Any] = {
        "rule": rule,
        "title": "A stateful map runs one element at a time",
        "status": "fail",
        "severity": "error",
        "file": SCRIPT,
        "line": 12,
        "op_id": "map_0",
        "evidence": {"self_ms_per_step": 9.0, "parallelism": 1},
        "advice": "Write the function in TensorFlow operations.",
        "effect_on_results": "same results",
        "predicted_speedup": 2.0,
    }
    return Finding(**{**values, **overrides})


def make_embedding(**overrides: Any) -> Embedding:
    values: dict[str, Any] = {
        "layer": "embedding",
        "rows": 1000,
        "dim": 64,
        "dtype": "float32",
        "table_bytes": 256000,
        "slot_bytes": 512000,
        "gradient": None,
        "update": None,
        "rows_touched_per_step": None,
    }
    return Embedding(**{**values, **overrides})


def make_verdict(**overrides: Any) -> Verdict:
    values: dict[str, Any] = {
        "bottleneck": "input",
        "severity": "high",
        "summary": "Highly input-bound: 70 % of each step waits for input; map at train.py:12 "
        "costs most.",
        "confidence": "high",
        "reasons": ["40 steps without a profiler; interval 69 to 71 %."],
        "file": SCRIPT,
        "line": 12,
        "op_id": "map_0",
    }
    return Verdict(**{**values, **overrides})


def make_windows() -> list[Window]:
    return [
        Window(
            kind="warmup",
            loop_id="loop_0",
            start_ms=3000.0,
            duration_ms=1000.0,
            steps=10,
            complete=True,
        ),
        Window(
            kind="baseline",
            loop_id="loop_0",
            start_ms=4000.0,
            duration_ms=400.0,
            steps=40,
            complete=True,
        ),
        Window(
            kind="profile",
            loop_id="loop_0",
            start_ms=4500.0,
            duration_ms=120.0,
            steps=10,
            complete=True,
        ),
    ]


def make_step_rows() -> list[StepRow]:
    return [
        StepRow(
            index=index,
            window="baseline",
            block=0,
            start_ms=4000.0 + 10.0 * index,
            duration_ms=10.0,
            input_wait_ms=7.0,
            batches=1,
        )
        for index in range(40)
    ]


def make_host_samples() -> list[HostSample]:
    return [
        HostSample(
            at_ms=4000.0 + 100.0 * index,
            window="baseline",
            cpu_percent=60.0,
            rss_bytes=600 * 2**20,
            available_bytes=4 * 2**30,
            io_wait_percent=0.0,
            read_bytes_per_s=0.0,
            pools_percent={"tf_data": 95.0, "python_main": 12.0},
        )
        for index in range(4)
    ]


def make_session(**overrides: Any) -> Session:
    """A plausible input-bound session; any top-level field can be replaced."""
    values: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "pipediag_version": "0.1.0",
        "created_at": "2026-01-02T03:04:05+00:00",
        "script": Script(
            path=SCRIPT,
            args=[],
            status=None,
            outcome="stopped",
            detail="Pipediag stopped it after the windows.",
        ),
        "environment": make_environment(),
        "verdict": make_verdict(),
        "steps": make_steps(),
        "breakdown": make_breakdown(),
        "input_wait": make_input_wait(),
        "perturbation": Perturbation(baseline_step_ms=10.0, profiled_step_ms=12.0, ratio=1.2),
        "differential": Differential(
            step_ms=3.0, ci95_ms=(2.9, 3.1), steps=30, input_share_percent=70.0
        ),
        "ceiling": Ceiling(
            speedup_if_input_free=3.33, ci95=(3.2, 3.5), next_bottleneck="device_compute"
        ),
        "pipeline": make_pipeline(),
        "devices": [make_device()],
        "host": make_host(),
        "findings": [make_finding()],
        "combined": None,
        "combined_missing": "No edit was tried.",
        "loops": [make_loop()],
        "windows": make_windows(),
        "step_rows": make_step_rows(),
        "host_samples": make_host_samples(),
        "wall_s": 6.0,
    }
    return Session(**{**values, **overrides})


def make_compute_bound_session(**overrides: Any) -> Session:
    """The same run with a pipeline that keeps up: 1 % input wait, 90 % device compute."""
    values: dict[str, Any] = {
        "breakdown": make_breakdown(input_wait=1.0, device_compute=90.0, dispatch=5.0, python=3.0),
        "input_wait": make_input_wait(
            native_percent=1.0, native_ci95_percent=(0.5, 1.5), trace_percent=1.2
        ),
        "differential": Differential(
            step_ms=9.9, ci95_ms=(9.8, 10.0), steps=30, input_share_percent=1.0
        ),
        "ceiling": Ceiling(
            speedup_if_input_free=1.01, ci95=(1.0, 1.02), next_bottleneck="device_compute"
        ),
        "verdict": make_verdict(
            bottleneck="compute",
            severity="ok",
            summary="Compute-bound: 90 % of each step is device compute.",
            file=None,
            line=None,
            op_id=None,
        ),
        "findings": [],
    }
    return make_session(**{**values, **overrides})
