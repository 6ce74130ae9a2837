from __future__ import annotations

import pytest

from pipediag.measures.host.samples import OUTSIDE, host_samples
from pipediag.session.host_track import GpuReading, HostTrack
from tests.measures.tracks import MS, PID, make_reading, make_stacks_window, make_track, make_window

WINDOWS = [make_window("baseline", 200, 400), make_stacks_window(400, 500, 10)]


def test_one_row_for_each_span_between_readings() -> None:
    rows = host_samples(make_track(7), WINDOWS, started_ns=-50 * MS, cores_allowed=2.0)
    assert [row.at_ms for row in rows] == [150, 250, 350, 450, 550, 650]
    assert [row.window for row in rows] == [
        OUTSIDE,
        OUTSIDE,
        "baseline",
        "baseline",
        "stacks",
        OUTSIDE,
    ]
    first = rows[0]
    assert first.cpu_percent == pytest.approx(60)
    assert first.rss_bytes == 1001
    assert first.available_bytes == 8999
    assert first.read_bytes_per_s == pytest.approx(40_000)
    assert first.pools_percent == pytest.approx(
        {"tf_data": 30, "eigen": 10, "python_main": 60, "python_other": 20, "others": 0}
    )


def test_what_is_read_rarely_stands_in_the_row_that_read_it() -> None:
    rows = host_samples(make_track(11), [], started_ns=0, cores_allowed=2.0)
    assert [row.io_wait_percent for row in rows] == [None] * 4 + [5.0] + [None] * 4 + [5.0]
    assert {row.gpu_percent for row in rows} == {None}


def test_gpus_are_averaged() -> None:
    gpus = (GpuReading("A", 20.0, 1, 2), GpuReading("B", 60.0, 1, 2))
    track = make_track(readings=(make_reading(0), make_reading(1, gpus=gpus)))
    assert host_samples(track, [], 0, 2.0)[0].gpu_percent == 40


def test_hidden_counters_are_none() -> None:
    readings = tuple(make_reading(i, read_bytes=None, available_bytes=None) for i in range(2))
    row = host_samples(make_track(readings=readings), [], 0, 2.0)[0]
    assert row.read_bytes_per_s is None
    assert row.available_bytes is None


@pytest.mark.parametrize("track", [HostTrack(PID, missing="gone"), make_track(1)])
def test_no_span_no_row(track: HostTrack) -> None:
    assert host_samples(track, WINDOWS, 0, 2.0) == []
