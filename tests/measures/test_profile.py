"""What a profile shows of devices and hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipediag.measures import profile as gaps_module
from pipediag.measures.profile import (
    all_gaps,
    describe_devices,
    trace_report,
    trace_steps,
)
from pipediag.session.devices import (
    DeviceActivity,
    DeviceCopies,
    DeviceGap,
    DeviceKernel,
    DeviceLaunches,
    TraceHost,
)
from pipediag.trace.devices import (
    Copies,
    DeviceTrace,
    Kernel,
    KernelLaunches,
    Overlap,
)
from pipediag.trace.gaps import DeviceGaps
from pipediag.trace.pipeline import IteratorKey
from pipediag.trace.summary import HostSummary, read_hosts
from pipediag.vocabulary import GAP_CAUSES, GapCause
from tests.measures.traces import make_split, make_trace
from tests.records import make_pipeline
from tests.reporters.devices import US, gpu_profile

MAP: IteratorKey = ("Root::Map", ("m",))
PREFETCH: IteratorKey = ("Root::Prefetch", ("p",))
MS = 1_000_000


def device(*gaps: tuple[int, int, dict[GapCause, int]], **overrides: Any) -> DeviceTrace:
    """Gaps as start, end and causes, all in milliseconds."""
    count = len(gaps)
    split = np.array([[causes.get(cause, 0) for cause in GAP_CAUSES] for _, _, causes in gaps]) * MS
    spans = np.array([(start, end) for start, end, _ in gaps]) * MS
    details: dict[str, Any] = {
        "iterator_ids": np.full(count, -1),
        "iterators": (MAP, PREFETCH),
        "doing_ids": np.full(count, -1, np.int32),
        "doing_names": ("$train_step", "save$"),
        "launch_ids": np.full(count, -1),
    }
    details |= {name: overrides.pop(name) for name in tuple(overrides) if name in details}
    values: dict[str, Any] = {
        "name": "GPU:0",
        "kind": "gpu",
        "window": (5 * MS, 105 * MS),
        "busy_ns": 40 * MS,
        "idle_ns": 60 * MS,
        "longest_gap_ns": 9 * MS,
        "noise_ns": MS,
        "gap_floor_ns": 5_000,
        "noise_count": 3,
        "gaps": DeviceGaps(spans.astype(np.int64), split, **details),
    }
    return DeviceTrace(**{**values, **overrides})


def test_a_gap_names_the_operation_behind_it() -> None:
    traced = device(
        (7, 16, {"input": 9}),
        iterator_ids=np.array([0]),
        doing_ids=np.array([0], np.int32),
    )
    trace = make_trace(window_ns=(5 * MS, 105 * MS), devices=(traced,))
    (found,) = describe_devices(trace, make_pipeline(), {MAP: "map_0"})
    assert (found.busy_percent, found.idle_percent, found.noise_ms) == (40.0, 60.0, 1.0)
    assert found.causes_ms == {"input": 9.0}
    (described,) = found.gaps
    assert (described.start_ms, described.duration_ms) == (2.0, 9.0)
    assert (described.op_id, described.line, described.iterator) == ("map_0", 12, "Root::Map")
    assert described.doing == "train_step"


def test_a_device_is_told_in_all_that_was_traced_of_it() -> None:
    traced = device(
        (27, 36, {"sync": 9}),
        doing_ids=np.array([0], np.int32),
        model="NVIDIA H200",
        overlap=Overlap(30 * MS, 8 * MS, 2 * MS, 4 * MS, 1 * MS),
        copies=(
            Copies("host_to_device", 3, 4 * MS, 8 * MS, 2 * MS, 64_000_000),
            Copies("set", 1, 1 * MS, 1 * MS, 1 * MS, None),
            Copies("device_to_host", 2, 0, 0, 0, 100),
        ),
        kernels=(Kernel("gemm", 5, 20 * MS, True),),
        launches=KernelLaunches(15, 10, 2_000.0, None, None, None),
    )
    (found,) = describe_devices(make_trace(devices=(traced,)), None, {})

    assert found == DeviceActivity(
        name="GPU:0",
        kind="gpu",
        model="NVIDIA H200",
        span_ms=100.0,
        busy_ms=40.0,
        idle_ms=60.0,
        busy_percent=40.0,
        idle_percent=60.0,
        longest_gap_ms=9.0,
        noise_ms=1.0,
        noise_count=3,
        gap_floor_us=5.0,
        causes_ms={"sync": 9.0},
        gap_count=1,
        compute_ms=30.0,
        copy_ms=8.0,
        exposed_copy_ms=2.0,
        collective_ms=4.0,
        exposed_collective_ms=1.0,
        matmul_ms=20.0,
        tensor_core_ms=20.0,
        copies=[
            copied("host_to_device", count=3, ms=4.0, exposed_ms=2.0, bytes=64_000_000, gb_per_s=8),
            copied("set", count=1, ms=1.0, exposed_ms=1.0, bytes=None, gb_per_s=None),
            copied("device_to_host", count=2, ms=0.0, exposed_ms=0.0, bytes=100, gb_per_s=None),
        ],
        kernels=[DeviceKernel(name="gemm", count=5, ms=20.0)],
        launches=DeviceLaunches(
            kernels=15,
            per_s=150.0,
            matched=10,
            median_kernel_us=2.0,
            median_launch_us=None,
            shorter_than_launch_percent=None,
            median_delay_us=None,
        ),
        gaps=[
            DeviceGap(
                start_ms=27.0,
                duration_ms=9.0,
                cause="sync",
                causes_ms={"sync": 9.0},
                doing="train_step",
                step=2,
            )
        ],
    )


def copied(direction: str, **known: object) -> DeviceCopies:
    return DeviceCopies(**{"direction": direction, **known})


@pytest.mark.parametrize("count", [1, 4, 5])
def test_all_gaps_come_once_each_a_few_at_a_time(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps_module, "_AT_ONCE", 2)
    traced = device(*[(start, start + 1, {"python": 1}) for start in range(count)])  # type: ignore[list-item]
    parts = list(all_gaps(traced, make_trace()))
    assert max(len(places) for places, _ in parts) <= 2
    assert [place for places, _ in parts for place in places.tolist()] == list(range(count))
    assert [ms for _, part in parts for ms in part.start_ms] == [float(n) for n in range(count)]


CREATED_AT = "2026-01-02T03:04:05+00:00"


def test_several_hosts_are_on_their_devices_and_an_unread_file_is_none(tmp_path: Path) -> None:
    files = [gpu_profile().save(tmp_path, f"{name}.xplane.pb") for name in ("a", "b")]
    damaged = tmp_path / "c.xplane.pb"
    damaged.write_bytes(b"\xff" * 50)

    report = trace_report("logs", read_hosts([*files, damaged]), CREATED_AT)

    assert [host.host for host in report.hosts] == ["a", "b"]
    assert [device.host for device in report.devices] == ["a", "b"]
    [unread] = report.unread
    assert unread.path == str(damaged)
    assert "c.xplane.pb" in unread.reason


def test_hosts_whose_files_say_when_are_compared_step_by_step(tmp_path: Path) -> None:
    files = []
    for host, later_ns in (("a", 0), ("b", 30 * US)):
        builder = gpu_profile()
        began = 1_700_000_000_000_000_000 + later_ns
        builder.plane("Task Environment").stat("profile_start_time", began)
        files.append(builder.save(tmp_path, f"{host}.xplane.pb"))

    report = trace_report("logs", read_hosts(files), CREATED_AT)

    assert [host.steps_late_ms for host in report.hosts] == [0.0, 0.03]
    assert [device.host_late_ms for device in report.devices] == [0.0, 0.03]
    assert report.hosts[0].starts_unix_ms == 1_700_000_000_000.0
    assert report.steps_late_missing is None


def test_a_host_is_told_with_its_steps_its_time_and_what_was_noted() -> None:
    summary = make_trace(window_ns=(5 * MS, 105 * MS), epoch_ns=2_000 * MS)
    host = HostSummary(Path("a.pb"), "vm", "xplane", 70, summary, warnings=("Events were lost.",))

    [told] = trace_report("logs", [host], CREATED_AT).hosts

    assert told == TraceHost(
        path="a.pb",
        host="vm",
        format="xplane",
        events=70,
        span_ms=100.0,
        steps=trace_steps(make_split(input_wait=7.0, device_compute=2.0, dispatch=1.0)),
        steps_missing=None,
        starts_unix_ms=2_005.0,
        steps_late_ms=None,
        warnings=["Events were lost."],
    )
    assert told.steps is not None
    assert told.steps.mean_ms == 10.0
