"""Devices with a span of 100 ms, so that every millisecond is one percent of it."""

from __future__ import annotations

from typing import Any

from pipediag.rules.rule import Rule
from pipediag.session.devices import DeviceActivity, DeviceCopies, DeviceGap, DeviceLaunches
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework, GapCause
from tests.factories import make_compute_bound_session, make_device

SPAN_MS = 100.0


def gpu(causes_ms: dict[GapCause, float] | None = None, **overrides: Any) -> DeviceActivity:
    """A GPU that is idle for these causes and busy for the rest, with one gap for each cause."""
    causes = causes_ms or {}
    idle = sum(causes.values())
    values: dict[str, Any] = {
        "name": "GPU:0",
        "kind": "gpu",
        "model": "NVIDIA H200",
        "span_ms": SPAN_MS,
        "busy_ms": SPAN_MS - idle,
        "idle_ms": idle,
        "busy_percent": SPAN_MS - idle,
        "idle_percent": idle,
        "longest_gap_ms": max(causes.values(), default=0.0),
        "noise_ms": 0.0,
        "causes_ms": causes,
        "gaps": [gap(cause, ms) for cause, ms in causes.items()],
    }
    return make_device(**{**values, **overrides})


def under_floor(ms: float = 82.5, floor_us: float = 1000.0, **overrides: Any) -> DeviceActivity:
    """A GPU that is idle in gaps too short to be looked into."""
    return gpu(
        **{
            "busy_ms": SPAN_MS - ms,
            "idle_ms": ms,
            "idle_percent": ms,
            "noise_ms": ms,
            "gap_floor_us": floor_us,
            **overrides,
        }
    )


def cpu(causes_ms: dict[GapCause, float]) -> DeviceActivity:
    return gpu(causes_ms, name="CPU", kind="cpu", model=None)


def gap(cause: GapCause, ms: float = 1.0, **overrides: Any) -> DeviceGap:
    values: dict[str, Any] = {
        "start_ms": 0.0,
        "duration_ms": ms,
        "cause": cause,
        "causes_ms": {cause: ms},
    }
    return DeviceGap(**{**values, **overrides})


def copies(**overrides: Any) -> DeviceCopies:
    """Ten copies from the host of 1 MB each."""
    values: dict[str, Any] = {
        "direction": "host_to_device",
        "count": 10,
        "ms": 10.0,
        "exposed_ms": 10.0,
        "bytes": 10_000_000,
        "gb_per_s": 1.0,
    }
    return DeviceCopies(**{**values, **overrides})


def launches(**overrides: Any) -> DeviceLaunches:
    """Kernels of 20 us whose launches take 5 us and find the queue empty."""
    values: dict[str, Any] = {
        "kernels": 1000,
        "per_s": 10_000.0,
        "matched": 1000,
        "median_kernel_us": 20.0,
        "median_launch_us": 5.0,
        "shorter_than_launch_percent": 10.0,
        "median_delay_us": 3.0,
    }
    return DeviceLaunches(**{**values, **overrides})


def session_on(*devices: DeviceActivity, **overrides: Any) -> Session:
    """A session whose input keeps up, with these devices in its profile."""
    return make_compute_bound_session(devices=list(devices), **overrides)


def on_devices(
    rule: Rule, *devices: DeviceActivity, framework: Framework = "tensorflow"
) -> Finding:
    """The rule's one finding on a profile without a session."""
    assert rule.check_devices is not None
    found = [*rule.check_devices(devices, framework, None)] or [rule.finding("pass")]
    (finding,) = found
    return finding
