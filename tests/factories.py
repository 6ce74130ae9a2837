"""Hand-made recordings and sessions, small enough to check by eye.

Session and recording tell of one input-bound Keras `fit`: a 10 ms step of which 7 ms are input
wait, a serial stateful map at `train.py:12` behind it, and a consumer that would need 3 ms by
itself.
"""

from __future__ import annotations

from typing import Any

from pipediag.session.devices import DeviceActivity, DeviceGap
from pipediag.session.findings import Finding, Verdict
from pipediag.session.ledger import Run, RunPart
from pipediag.session.loops import Ceiling, Differential, Embedding, Loop, Perturbation, StepRow
from pipediag.session.model import Host, HostSample, HotLine, Script, Session
from pipediag.session.recorded_loops import KerasUse
from tests.records import (
    SCRIPT,
    make_breakdown,
    make_environment,
    make_input_wait,
    make_pipeline,
    make_steps,
)


def make_keras(**overrides: Any) -> KerasUse:
    values: dict[str, Any] = {
        "model": "Sequential",
        "optimizer": "Adam",
        "run_eagerly": False,
        "jit_compile": False,
        "steps_per_execution": 1,
        "epochs": 2,
        "steps_per_epoch": None,
        "data_adapter": "TFDatasetAdapter",
        "source": "_BatchDataset",
        "workers": None,
        "use_multiprocessing": None,
    }
    return KerasUse(**{**values, **overrides})


def make_run(**overrides: Any) -> Run:
    """Twenty seconds, of which steps are a quarter, a callback a half, and parsing an eighth."""
    values: dict[str, Any] = {
        "scope": "run",
        "total_s": 8.0,
        "projected_total_s": 20.0,
        "pipediag_s": 1.5,
        "epochs_seen": 2.5,
        "epochs_planned": 10,
        "not_seen": ["what the script does after this training"],
        "parts": [
            make_part("startup", 2.5, what="imports", line=3),
            make_part("before_training", 2.0, what="in `parse`", line=7),
            make_part("before_training", 0.5),
            make_part(
                "steps", 5.0, basis="projected", count=500, line=20, loop_id="loop_0", ci95=(24, 26)
            ),
            make_part(
                "epoch_end",
                10.0,
                basis="projected",
                count=10,
                what="the callback Save",
                line=14,
                loop_id="loop_0",
                ci95=(49.0, 51.0),
            ),
        ],
    }
    return Run(**{**values, **overrides})


def make_part(part: str, seconds: float, whole_s: float = 20.0, **overrides: Any) -> RunPart:
    """A row of the ledger, of a whole of twenty seconds."""
    limits = overrides.pop("ci95", None)
    values: dict[str, Any] = {
        "part": part,
        "seconds": seconds,
        "percent": 100.0 * seconds / whole_s,
        "basis": "measured",
        "ci95_percent": limits,
        "file": SCRIPT if "line" in overrides else None,
    }
    return RunPart(**{**values, **overrides})


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


def make_host(**overrides: Any) -> Host:
    values: dict[str, Any] = {
        "cpu_percent": 60.0,
        "cores_busy": 1.2,
        "cores_allowed": 2.0,
        "threads": {"tf_data": 95.0, "eigen": 10.0, "python_main": 12.0, "others": 3.0},
        "rss_bytes": 600 * 2**20,
        "available_bytes": 4 * 2**30,
        "io_wait_percent": 0.0,
        "read_bytes_per_s": 0.0,
        "hot_python": [
            HotLine(file=SCRIPT, line=6, function="parse", percent=80.0, thread="source")
        ],
        "samples": 20,
    }
    return Host(**{**values, **overrides})


GAP = DeviceGap(start_ms=2.0, duration_ms=8.0, cause="input", op_id="map_0", file=SCRIPT, line=12)


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
        "gaps": [GAP],
    }
    return DeviceActivity(**{**values, **overrides})


def make_finding(rule: str = "parallel-map", **overrides: Any) -> Finding:
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
        "speedup_at_most": 2.0,
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
        )
        for index in range(4)
    ]


def make_session(**overrides: Any) -> Session:
    """A plausible input-bound session; any top-level field can be replaced."""
    values: dict[str, Any] = {
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
