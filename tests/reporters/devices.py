"""Devices, trace reports and a profile of one GPU, small enough to check by eye.

One GPU over a window of 100 ms: busy for 40 ms, idle for 60 ms, of which 45 ms are waiting for
input, 10 ms launching, 4 ms in copies and 1 ms in gaps under the floor.
"""

from __future__ import annotations

from typing import Any

from pipediag.session.devices import (
    ClassShare,
    DeviceActivity,
    DeviceCopies,
    DeviceGap,
    DeviceKernel,
    TraceHost,
    TraceReport,
    TraceSteps,
)
from tests.trace.builder import TraceBuilder, add_events, marked_steps


def make_gap(**overrides: Any) -> DeviceGap:
    values: dict[str, Any] = {
        "start_ms": 20.0,
        "duration_ms": 30.0,
        "cause": "input",
        "causes_ms": {"input": 28.0, "launch": 2.0},
        "iterator": "Root::Prefetch::ParallelMapV2",
        "doing": "IteratorGetNextOp::DoCompute",
        "step": 1,
    }
    return DeviceGap(**{**values, **overrides})


def make_gpu(**overrides: Any) -> DeviceActivity:
    values: dict[str, Any] = {
        "name": "GPU:0",
        "kind": "gpu",
        "model": "Example GPU, compute capability 9.0",
        "span_ms": 100.0,
        "busy_ms": 40.0,
        "idle_ms": 60.0,
        "busy_percent": 40.0,
        "idle_percent": 60.0,
        "longest_gap_ms": 30.0,
        "noise_ms": 1.0,
        "causes_ms": {"input": 45.0, "launch": 10.0, "copy": 4.0},
        "gap_count": 3,
        "noise_count": 400,
        "compute_ms": 35.0,
        "exposed_copy_ms": 5.0,
        "collective_ms": 0.0,
        "exposed_collective_ms": 0.0,
        "matmul_ms": 20.0,
        "tensor_core_ms": 15.0,
        "copies": [
            DeviceCopies(
                direction="host_to_device",
                count=12,
                ms=7.0,
                exposed_ms=5.0,
                bytes=70_000_000,
                gb_per_s=10.0,
            ),
            DeviceCopies(
                direction="set", count=3, ms=1.0, exposed_ms=0.0, bytes=None, gb_per_s=None
            ),
        ],
        "kernels": [
            DeviceKernel(name="ampere_sgemm_128x64_tn", count=24, ms=20.0),
            DeviceKernel(name="void tensorflow::AddKernel<float>(float*)", count=240, ms=15.0),
        ],
        "kernel_count": 264,
        "median_kernel_us": 60.0,
        "median_delay_us": 4.0,
        "gaps": [
            make_gap(),
            make_gap(
                start_ms=60.0,
                duration_ms=19.0,
                cause="input",
                causes_ms={"input": 17.0, "copy": 2.0},
                file="/home/me/project/train.py",
                line=12,
                step=2,
            ),
            make_gap(
                start_ms=85.0,
                duration_ms=10.0,
                cause="launch",
                causes_ms={"launch": 8.0, "copy": 2.0},
                iterator=None,
                doing="ExecutorState::Process",
                step=3,
            ),
        ],
    }
    return DeviceActivity(**{**values, **overrides})


def make_cpu(**overrides: Any) -> DeviceActivity:
    """A CPU in place of a device: no copies or kernels."""
    values: dict[str, Any] = {
        "name": "CPU",
        "kind": "cpu",
        "model": None,
        "compute_ms": None,
        "exposed_copy_ms": None,
        "collective_ms": None,
        "exposed_collective_ms": None,
        "matmul_ms": None,
        "tensor_core_ms": None,
        "copies": [],
        "kernels": [],
        "kernel_count": None,
        "median_kernel_us": None,
        "median_delay_us": None,
    }
    return make_gpu(**{**values, **overrides})


def make_trace_steps(**overrides: Any) -> TraceSteps:
    values: dict[str, Any] = {
        "count": 4,
        "basis": "annotations",
        "mean_ms": 25.0,
        "median_ms": 24.5,
        "p95_ms": 28.0,
        "breakdown": {
            "input_wait": ClassShare(ms=11.25, percent=45.0),
            "device_compute": ClassShare(ms=8.75, percent=35.0),
            "device_copy": ClassShare(ms=5.0, percent=20.0),
        },
    }
    return TraceSteps(**{**values, **overrides})


def make_trace_host(**overrides: Any) -> TraceHost:
    values: dict[str, Any] = {
        "path": "logs/plugins/profile/2026_01_02/vm.xplane.pb",
        "host": "vm",
        "format": "xplane",
        "events": 12_345,
        "span_ms": 110.0,
        "steps": make_trace_steps(),
    }
    return TraceHost(**{**values, **overrides})


def make_report(**overrides: Any) -> TraceReport:
    values: dict[str, Any] = {
        "pipediag_version": "0.1.0",
        "created_at": "2026-01-02T03:04:05+00:00",
        "path": "logs",
        "hosts": [make_trace_host()],
        "devices": [make_gpu()],
    }
    return TraceReport(**{**values, **overrides})


US = 1_000


def gpu_profile() -> TraceBuilder:
    """Two steps of 100 us; the GPU computes from 20.001 to 60 us and from 120 to 160 us."""
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("python", 7)
    add_events(line, marked_steps(0, 100 * US, 200 * US))
    line.event("cuLaunchKernel", 10 * US, 12 * US, correlation_id=41)
    getter = host.line("tf_data_iterator_get_next/1", 8)
    getter.event("IteratorGetNextOp::DoCompute", 62 * US, 118 * US, id=5)
    getter.event("Iterator::Root", 63 * US, 117 * US, id=1)
    getter.event("Iterator::Root::Map", 64 * US, 116 * US, id=2, parent_id=1, name="parse")
    gpu = builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13)
    gpu.event("gemm", 20 * US + 1, 60 * US, correlation_id=41)
    gpu.event("gemm", 120 * US, 160 * US)
    return builder
