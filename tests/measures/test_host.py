"""What the host did in a window, by readings made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipediag.measures.host import (
    OUTSIDE,
    host_of_loop,
    host_samples,
    hot_lines,
    measure_host,
    thread_pools,
)
from pipediag.measures.recorded_windows import Missing
from pipediag.session.model import Host
from pipediag.session.recording import RecordedStacks, StackLine
from pipediag.session.timeline import GpuReading, HostTrack, ThreadSeen
from tests.measures.tracks import (
    BLAS,
    COMPUTE,
    EIGEN,
    GET_NEXT,
    MAP,
    MS,
    PID,
    RUNNER,
    SOURCE,
    THREADS,
    make_host_window,
    make_reading,
    make_stacks_window,
    make_track,
)
from tests.recordings import make_block, make_recording, make_window

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


def test_python_beside_the_loop_costs_cpu_per_step() -> None:
    window = make_stacks_window(1500, 1700, steps=10)
    window.python_thread_cpu_ns["pipediag-stacks#999"] = 500 * MS
    host = measure_host(make_track(), [WINDOW], 2.0, windows=[window])
    assert host is not None
    assert host.python_source_cpu_ms_per_step == pytest.approx(20)


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


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (1, "drawn = rng.choice( words, size=(2, 3), p=weights, )"),
        (5, "other = 3"),
        (6, "broken = ("),
        (9, None),
    ],
)
def test_a_hot_line_has_the_code_of_its_whole_call(
    tmp_path: Path, line: int, code: str | None
) -> None:
    path = tmp_path / "data.py"
    path.write_text(
        "drawn = rng.choice(\n    words,\n    size=(2, 3), p=weights,\n)\nother = 3\nbroken = (\n"
    )
    hot = StackLine(str(path), line, "rows", "source", 30)
    (found,) = hot_lines([make_stacks([hot])])
    assert found.code == code


def test_hot_lines_of_several_recordings_are_added_up() -> None:
    hot = StackLine("data.py", 7, "__getitem__", "source", 30)
    cool = StackLine("train.py", 3, "<module>", "main", 5)
    first, second = hot_lines([make_stacks([cool, hot]), make_stacks([hot])])
    assert (first.file, first.line, first.thread) == ("data.py", 7, "source")
    assert first.percent == pytest.approx(60)
    assert second.percent == pytest.approx(5)


def test_the_ten_hottest_lines_are_told() -> None:
    lines = [StackLine("data.py", n, "f", "source", 50 - n) for n in range(12)]
    assert [line.line for line in hot_lines([make_stacks(lines)])] == list(range(10))


WINDOWS = [make_host_window("baseline", 200, 400), make_stacks_window(400, 500, 10)]


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


def test_samples_a_thread_that_nobody_knows_is_among_the_others() -> None:
    spent = {PID: 60 * MS, 999: 25 * MS}
    track = make_track(readings=(make_reading(0), make_reading(1, thread_cpu_ns=spent)))
    row = host_samples(track, [], 0, 2.0)[0]
    # Of 120 ms in all, 35 were taken by threads that no reading met.
    assert row.pools_percent == pytest.approx(
        {"tf_data": 0, "eigen": 0, "python_main": 60, "python_other": 0, "others": 60}
    )


def test_threads_are_told_by_name_record_and_age() -> None:
    assert thread_pools(make_track(), {PID, SOURCE}) == {
        PID: "python_main",
        BLAS: "others",
        EIGEN: "eigen",
        COMPUTE: "eigen",
        RUNNER: "eigen",
        SOURCE: "python_other",
        MAP: "tf_data",
        GET_NEXT: "tf_data",
    }


def test_unnamed_threads_are_others_where_no_python_thread_is_known() -> None:
    pools = thread_pools(make_track(), set())
    assert pools[PID] == "python_main"
    assert pools[EIGEN] == pools[SOURCE] == pools[MAP] == "others"
    assert pools[COMPUTE] == "eigen"
    assert pools[GET_NEXT] == "tf_data"


def test_without_a_graph_runner_the_start_is_taken_to_last_a_tenth_of_a_second() -> None:
    threads = {tid: thread for tid, thread in THREADS.items() if tid != RUNNER}
    threads[200] = ThreadSeen(200, "tf_Compute", 503)
    pools = thread_pools(make_track(threads=threads), {PID, SOURCE})
    assert pools[200] == "eigen"
    assert pools[MAP] == "tf_data"


def test_a_graph_runner_that_came_before_the_pools_does_not_end_the_start() -> None:
    threads = {
        1: ThreadSeen(1, "python", 100),
        2: ThreadSeen(2, "tf_graph_runner", 413),
        3: ThreadSeen(3, "python", 414),
        4: ThreadSeen(4, "tf_Compute", 414),
        5: ThreadSeen(5, "tf_Compute", 495),
    }
    pools = thread_pools(HostTrack(1, threads=threads), {1})
    assert (pools[3], pools[4], pools[5]) == ("eigen", "eigen", "tf_data")


def test_a_host_that_was_not_sampled_gives_the_reason() -> None:
    recording = make_recording()
    track = HostTrack(pid=1, missing="psutil saw no such process.")
    found = host_of_loop(track, recording, recording.loops[0], 2.0)
    assert found == Missing("psutil saw no such process.")


def test_without_a_baseline_there_is_no_host() -> None:
    recording = make_recording(windows=[])
    found = host_of_loop(HostTrack(pid=1), recording, recording.loops[0], 2.0)
    assert isinstance(found, Missing)
    assert "no baseline" in found.reason


def test_a_baseline_too_short_for_the_sampler_is_taken_with_the_stacks_after_it() -> None:
    """It touches one reading's span; those up to the end of the stacks are seven."""
    baseline = make_window("baseline", make_block(4, 20.0, start_ms=510.0))
    stacks = make_window("stacks", make_block(30, 20.0, start_ms=600.0))
    short = make_recording(windows=[baseline])
    longer = make_recording(windows=[baseline, stacks])
    other = make_window("stacks", make_block(30, 20.0, start_ms=600.0), loop_id="loop2")

    found = host_of_loop(make_track(), longer, longer.loops[0], 2.0)
    assert isinstance(found, Host)
    assert found.samples == 7
    assert found.cores_busy == 1.2
    for recording in (short, make_recording(windows=[baseline, other])):
        assert isinstance(host_of_loop(make_track(), recording, recording.loops[0], 2.0), Missing)


def test_stacks_and_threads_of_the_loop_alone_are_told() -> None:
    baseline = make_window(
        "baseline",
        make_block(20, 20.0, start_ms=500.0),
        python_thread_cpu_ns={"Thread-1#105": 40_000_000},
    )
    beside = make_window(
        "baseline",
        make_block(20, 20.0, start_ms=500.0),
        loop_id="loop2",
        python_thread_cpu_ns={"Thread-2#106": 900_000_000},
    )
    stacks = [RecordedStacks("loop1", 10, 1), RecordedStacks("loop2", 10, 1)]
    recording = make_recording(windows=[baseline, beside], stacks=stacks)

    found = host_of_loop(make_track(), recording, recording.loops[0], 2.0)

    assert isinstance(found, Host)
    assert found.python_source_cpu_ms_per_step == 2.0
