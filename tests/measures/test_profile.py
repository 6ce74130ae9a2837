"""What a profile shows of devices and hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pipediag.measures.profile import all_gaps, describe_devices, trace_report
from pipediag.trace.devices import DeviceTrace
from pipediag.trace.gaps import DeviceGaps
from pipediag.trace.pipeline import IteratorKey
from pipediag.trace.summary import read_hosts
from pipediag.vocabulary import GAP_CAUSES, GapCause
from tests.factories import make_device
from tests.measures.traces import make_trace
from tests.records import make_pipeline
from tests.reporters.devices import gpu_profile

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
    }
    columns = DeviceGaps(spans.astype(np.int64), split, **{**details, **overrides})
    return DeviceTrace(make_device(gaps=[]), (5 * MS, 105 * MS), columns)


def test_a_gap_names_the_operation_behind_it() -> None:
    traced = device(
        (27, 36, {"input": 9}), iterator_ids=np.array([0]), doing_ids=np.array([0], np.int32)
    )
    trace = make_trace(window_ns=(5 * MS, 105 * MS), devices=(traced,))
    (found,) = describe_devices(trace, make_pipeline(), {MAP: "map_0"})
    (described,) = found.gaps
    assert (described.start_ms, described.duration_ms) == (22.0, 9.0)
    assert (described.cause, described.causes_ms, described.step) == ("input", {"input": 9.0}, 2)
    assert (described.op_id, described.line, described.iterator) == ("map_0", 12, "Root::Map")
    assert described.doing == "train_step"


def test_all_gaps_come_once_each_in_order() -> None:
    traced = device((0, 1, {"python": 1}), (1, 2, {"python": 1}))
    assert [gap.start_ms for gap in all_gaps(traced, make_trace())] == [0.0, 1.0]


CREATED_AT = "2026-01-02T03:04:05+00:00"


def test_several_hosts_are_on_their_devices_and_an_unread_file_is_none(tmp_path: Path) -> None:
    files = [gpu_profile().save(tmp_path, f"{name}.xplane.pb") for name in ("a", "b")]
    damaged = tmp_path / "c.xplane.pb"
    damaged.write_bytes(b"\xff" * 50)

    report = trace_report("logs", *read_hosts([*files, damaged]), CREATED_AT)

    assert [host.host for host in report.hosts] == ["a", "b"]
    assert [device.host for device in report.devices] == ["a", "b"]
    [unread] = report.unread
    assert unread.path == str(damaged)
    assert "c.xplane.pb" in unread.reason
