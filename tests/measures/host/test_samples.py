from __future__ import annotations

import pytest

from pipediag.measures.host import OUTSIDE, host_samples
from pipediag.session.host_track import GpuReading, HostTrack
from tests.measures.tracks import (
    GET_NEXT,
    MAP,
    MS,
    PID,
    make_reading,
    make_stacks_window,
    make_track,
    make_window,
)

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


def test_a_thread_that_nobody_knows_is_among_the_others() -> None:
    spent = {PID: 60 * MS, 999: 25 * MS}
    track = make_track(readings=(make_reading(0), make_reading(1, thread_cpu_ns=spent)))
    row = host_samples(track, [], 0, 2.0)[0]
    # Of 120 ms in all, 35 were taken by threads that no reading met.
    assert row.pools_percent == pytest.approx(
        {"tf_data": 0, "eigen": 0, "python_main": 60, "python_other": 0, "others": 60}
    )


def test_threads_read_later_than_the_process_leave_nothing_for_others() -> None:
    late = make_reading(1, thread_cpu_ns={PID: 130 * MS})
    row = host_samples(make_track(readings=(make_reading(0), late)), [], 0, 2.0)[0]
    assert row.pools_percent["others"] == 0


def test_children_count_as_the_process_does() -> None:
    readings = (make_reading(0), make_reading(1, children_cpu_ns=40 * MS))
    row = host_samples(make_track(readings=readings), WINDOWS, 0, 2.0)[0]
    assert row.cpu_percent == pytest.approx(80)
    assert row.pools_percent["others"] == pytest.approx(40)


def test_two_readings_at_one_moment_are_no_span() -> None:
    twice = make_reading(1, rss_bytes=1)
    track = make_track(readings=(make_reading(0), make_reading(1), twice, make_reading(2)))
    assert [row.rss_bytes for row in host_samples(track, [], 0, 2.0)] == [1001, 1002]


def test_the_disk_is_not_waited_for_backwards_nor_in_no_time() -> None:
    def waited(**later: int | None) -> float | None:
        first = make_reading(0, machine_ticks=100, io_wait_ticks=50)
        track = make_track(readings=(first, make_reading(1, **later)))
        return host_samples(track, [], 0, 2.0)[0].io_wait_percent

    assert waited(machine_ticks=120, io_wait_ticks=55) == 25
    assert waited(machine_ticks=120, io_wait_ticks=45) == 0
    assert waited(machine_ticks=100, io_wait_ticks=50) is None
    assert waited(machine_ticks=None, io_wait_ticks=None) is None


def test_threads_of_one_pool_are_added_up() -> None:
    spent = {MAP: 30 * MS, GET_NEXT: 15 * MS}
    track = make_track(readings=(make_reading(0), make_reading(1, thread_cpu_ns=spent)))
    assert host_samples(track, WINDOWS, 0, 2.0)[0].pools_percent["tf_data"] == pytest.approx(45)


def test_shares_have_no_more_digits_than_were_measured() -> None:
    row = host_samples(make_track(7), WINDOWS, started_ns=-50 * MS, cores_allowed=7.0)[0]
    assert row.cpu_percent == 17.143
