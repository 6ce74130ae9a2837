from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.measures.host import hot_lines, measure_host
from pipediag.measures.recorded_windows import Missing
from pipediag.session.host import Host
from pipediag.session.host_track import GpuReading, HostTrack
from pipediag.session.recorded_windows import RecordedStacks, StackLine
from tests.measures.tracks import MAP, MS, PID, make_reading, make_stacks_window, make_track

WINDOW = (500 * MS, 1500 * MS)


def measured(track: HostTrack, window_ns: tuple[int, int] = WINDOW) -> Host:
    host = measure_host(track, [window_ns], 2.0, windows=[make_stacks_window(1500, 1700, 10)])
    assert isinstance(host, Host)
    return host


def test_cpu_is_a_share_of_what_may_be_used() -> None:
    host = measured(make_track())
    assert host.cores_busy == pytest.approx(1.2)
    assert host.cores_allowed == 2.0
    assert host.cpu_percent == pytest.approx(60)


def test_pools_are_percents_of_one_core() -> None:
    assert measured(make_track()).threads == pytest.approx(
        {"tf_data": 30, "eigen": 10, "python_main": 60, "python_other": 20, "others": 0}
    )


def test_children_and_brief_threads_are_others() -> None:
    readings = [
        make_reading(i, cpu_ns=i * 125 * MS, children_cpu_ns=i * 50 * MS) for i in range(21)
    ]
    host = measured(make_track(readings=tuple(readings)))
    assert host.threads["others"] == pytest.approx(55)
    assert host.cores_busy == pytest.approx(1.75)


def test_what_happens_between_two_runs_of_steps_is_none_of_their_cost() -> None:
    """From 800 to 1200 ms something else computes as well, such as a validation."""
    readings = []
    for i in range(21):
        reading, beside = make_reading(i), 80 * MS * min(4, max(0, i - 8))
        ran = {**reading.thread_cpu_ns, MAP: (110 if 8 < i <= 12 else 30) * MS}
        readings.append(replace(reading, cpu_ns=reading.cpu_ns + beside, thread_cpu_ns=ran))
    spans = [(500 * MS, 800 * MS), (1200 * MS, 1500 * MS)]

    host = measure_host(make_track(readings=tuple(readings)), spans, 2.0)

    assert isinstance(host, Host)
    assert host.cores_busy == pytest.approx(1.2)
    assert sum(host.threads.values()) == pytest.approx(120)


def test_memory_disk_and_switches() -> None:
    host = measured(make_track())
    assert host.rss_bytes == 1015
    assert host.rss_peak_bytes == 2000
    assert host.available_bytes == 8985
    assert host.page_cache_bytes == 700
    assert host.io_wait_percent == pytest.approx(5)
    assert host.read_bytes_per_s == pytest.approx(40_000)
    assert host.context_switches_per_s == pytest.approx(500)
    assert host.samples == 10


def test_readings_that_straddle_an_edge_count_in_proportion() -> None:
    readings = [make_reading(i) for i in range(21)]
    idle = [replace(r, thread_cpu_ns={}, cpu_ns=min(r.cpu_ns, 1200 * MS)) for r in readings]
    track = make_track(readings=tuple(readings[:11] + idle[11:]))
    host = measured(track, (950 * MS, 1350 * MS))
    assert host.cores_busy == pytest.approx(0.15)
    assert host.threads["python_main"] == pytest.approx(7.5)


def test_a_window_that_outlasts_the_readings_is_cut_to_them() -> None:
    host = measured(make_track(), (1000 * MS, 9000 * MS))
    assert host.cores_busy == pytest.approx(1.2)


def test_counters_that_were_never_read_are_none() -> None:
    hidden = {
        "read_bytes": None,
        "switches": None,
        "machine_ticks": None,
        "allowed_busy_ns": None,
        "allowed_idle_ns": None,
        "available_bytes": None,
    }
    track = make_track(readings=tuple(make_reading(i, **hidden) for i in range(21)))
    host = measured(track)
    assert host.read_bytes_per_s is None
    assert host.context_switches_per_s is None
    assert host.io_wait_percent is None
    assert host.available_bytes is None
    assert host.cores_of_others is host.cores_idle is None


def test_what_others_had_of_its_cpus_is_what_it_did_not_use_itself() -> None:
    host = measured(make_track())
    assert (host.cores_busy, host.cores_of_others) == pytest.approx((1.2, 0.5))
    assert host.cores_idle == pytest.approx(0.3)


def test_ticks_that_lag_behind_make_no_negative_others() -> None:
    readings = tuple(
        make_reading(i, **({"allowed_busy_ns": i * 110 * MS} if i % 5 == 0 else {}))
        for i in range(21)
    )
    assert measured(make_track(readings=readings)).cores_of_others == 0


def test_python_beside_the_loop_costs_cpu_per_step() -> None:
    window = make_stacks_window(1500, 1700, steps=10)
    window.python_thread_cpu_ns["pipediag-stacks#999"] = 500 * MS
    host = measure_host(make_track(), [WINDOW], 2.0, windows=[window])
    assert host is not None
    assert host.python_source_cpu_ms_per_step == pytest.approx(20)


def test_python_beside_the_loop_is_unknown_without_a_record() -> None:
    host = measure_host(make_track(), [WINDOW], 2.0)
    assert host is not None
    assert host.python_source_cpu_ms_per_step is None
    assert host.hot_python == []


def test_gpus_are_averaged_and_their_memory_is_the_highest() -> None:
    readings = [
        make_reading(
            i, gpus=(GpuReading("A", 10.0 * (i % 2), i, 80), GpuReading("B", None, None, None))
        )
        for i in range(5, 16)
    ]
    first, second = measured(make_track(readings=tuple(readings))).gpus
    assert first.name == "A"
    assert first.utilisation_percent == pytest.approx(60 / 11)
    assert (first.memory_used_bytes, first.memory_total_bytes) == (15, 80)
    assert (second.utilisation_percent, second.memory_used_bytes) == (None, None)


@pytest.mark.parametrize(
    "window_ns",
    [(510 * MS, 690 * MS), (5000 * MS, 6000 * MS), (2050 * MS, 2060 * MS)],
    ids=["short", "later than the readings", "short and later"],
)
def test_too_few_samples_are_no_measurement(window_ns: tuple[int, int]) -> None:
    found = measure_host(make_track(), [window_ns], 2.0)
    assert isinstance(found, Missing)
    assert "host samples" in found.reason


def test_the_samplers_own_reason_is_passed_on() -> None:
    track = HostTrack(PID, missing="This is darwin.")
    assert measure_host(track, [WINDOW], 2.0) == Missing("This is darwin.")


def make_stacks(lines: list[StackLine]) -> RecordedStacks:
    return RecordedStacks("fit", 50, 10 * MS, lines)


def test_hot_lines_of_several_recordings_are_added_up() -> None:
    hot = StackLine("data.py", 7, "__getitem__", "source", 30)
    cool = StackLine("train.py", 3, "<module>", "main", 5)
    first, second = hot_lines([make_stacks([cool, hot]), make_stacks([hot])])
    assert (first.file, first.line, first.thread) == ("data.py", 7, "source")
    assert first.percent == pytest.approx(60)
    assert second.percent == pytest.approx(5)


def test_without_stacks_there_is_no_hot_line() -> None:
    assert hot_lines([]) == []


def test_a_counter_read_twice_has_a_rate_and_one_read_once_has_none() -> None:
    """Some counters are read with every fifth reading only."""
    window = (0, 500 * MS)
    twice = measured(make_track(6), window)
    assert twice.io_wait_percent == pytest.approx(5)
    once = measured(make_track(5), (0, 400 * MS))
    assert once.io_wait_percent is None


def test_a_thread_that_nobody_knows_is_among_the_others() -> None:
    readings = [make_reading(i, thread_cpu_ns={PID: 60 * MS, 999: 25 * MS}) for i in range(21)]
    threads = measured(make_track(readings=tuple(readings))).threads
    assert threads["python_main"] == pytest.approx(60)
    assert threads["others"] == pytest.approx(60)


def test_three_samples_are_enough() -> None:
    assert measured(make_track(), (510 * MS, 790 * MS)).samples == 3
    found = measure_host(make_track(), [(510 * MS, 699 * MS)], 2.0)
    assert found == Missing(
        "The window of 189 ms holds 2 host samples; 3 are needed. More --steps make it longer."
    )


def test_the_ten_hottest_lines_are_told() -> None:
    lines = [StackLine("data.py", n, "f", "source", 50 - n) for n in range(12)]
    assert [line.line for line in hot_lines([make_stacks(lines)])] == list(range(10))
