"""A report from the profiles of several hosts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipediag.measures.trace_report import step_lateness, trace_report, trace_steps
from pipediag.session.trace_report import TraceHost
from pipediag.trace.hosts import HostSummary, summarise_hosts
from pipediag.trace.steps.splitting import StepSplit, StepWindows
from pipediag.trace.summary import TraceSummary
from pipediag.vocabulary import StepBasis
from tests.measures.traces import make_split, make_trace
from tests.reporters.perfetto.profiles import US, gpu_profile
from tests.trace.builder import TraceBuilder

CREATED_AT = "2026-01-02T03:04:05+00:00"
MS = 1_000_000


def test_several_hosts_are_on_their_devices_and_an_unread_file_is_none(tmp_path: Path) -> None:
    files = [gpu_profile().save(tmp_path, f"{name}.xplane.pb") for name in ("a", "b")]
    damaged = tmp_path / "c.xplane.pb"
    damaged.write_bytes(b"\xff" * 50)

    report = trace_report("logs", summarise_hosts([*files, damaged]), CREATED_AT)

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

    report = trace_report("logs", summarise_hosts(files), CREATED_AT)

    assert [host.steps_late_ms for host in report.hosts] == [0.0, 0.03]
    assert [device.host_late_ms for device in report.devices] == [0.0, 0.03]
    assert report.hosts[0].starts_unix_ms == 1_700_000_000_000.0
    assert report.steps_late_missing is None


def test_says_why_there_are_no_steps(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event("TFE_Py_Execute", 0, 10)

    [host] = trace_report("x", summarise_hosts([builder.save(tmp_path)]), CREATED_AT).hosts

    assert host.steps is None
    assert host.steps_missing


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


EPOCH = 1_700_000_000_000_000_000


def steps(starts_ms: list[int], first: int = 0, basis: StepBasis = "markers") -> StepSplit:
    starts = np.array(starts_ms, np.int64) * MS
    windows = np.column_stack((starts, starts + 10 * MS))
    numbers = tuple(range(first, first + len(starts_ms)))
    return replace(make_split(1), steps=StepWindows(windows, numbers, basis))


def host(starts_ms: list[int], epoch_ns: int | None = EPOCH, first: int = 0) -> TraceSummary:
    window = starts_ms[0] * MS, (starts_ms[-1] + 10) * MS
    return make_trace(steps=steps(starts_ms, first), epoch_ns=epoch_ns, window_ns=window)


def test_a_host_is_late_by_the_median_over_the_steps_that_all_have() -> None:
    # Steps 1 to 3 are common; the second host's clock begins 5 ms later.
    first = host([0, 10, 20, 30], first=0)
    second = host([7, 19, 95, 105], EPOCH + 5 * MS, first=1)

    late = step_lateness([("a", first), ("b", second)])

    # By 2, 4 and 70 ms.
    assert (late.ms, late.missing) == ([0.0, 4.0], None)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (host([0, 10], None), "the file of b holds no absolute time"),
        (host([0, 10], EPOCH + 10**12), "recorded at different times"),
        (host([0, 10], first=7), "share no numbered step"),
        (make_trace(epoch_ns=EPOCH, steps=None, window_ns=(0, 10**8)), "share no numbered step"),
        (
            make_trace(epoch_ns=EPOCH, steps=steps([0, 10], basis="period")),
            "share no numbered step",
        ),
    ],
)
def test_says_why_starts_cannot_be_compared(other: TraceSummary, said: str) -> None:
    late = step_lateness([("a", host([0, 10])), ("b", other)])
    assert late.ms == [None, None]
    assert said in str(late.missing)
