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
from pipediag.measures.steps import Missing
from pipediag.session.model import Host
from pipediag.session.recording import RecordedStacks, StackLine
from pipediag.session.timeline import GpuReading, HostTrack, ThreadSeen
from tests.measures.traces import (
    BLAS,
    COMPUTE,
    EIGEN,
    GET_NEXT,
    MAP,
    MS,
    PID,
    RUNNER,
    SOURCE,
    make_host_window,
    make_reading,
    make_track,
)
from tests.recordings import make_block, make_recording, make_window

WINDOW = (500 * MS, 1500 * MS)


def measured(track: HostTrack, window_ns: tuple[int, int] = WINDOW) -> Host:
    host = measure_host(track, [window_ns], 2.0, windows=[make_host_window("stacks", 1500, 1700)])
    assert isinstance(host, Host)
    return host


def test_cpu_memory_and_disk() -> None:
    host = measured(make_track())
    assert (host.cores_busy, host.cores_allowed) == (pytest.approx(1.2), 2.0)
    assert host.cpu_percent == pytest.approx(60)
    assert host.rss_bytes == 1015
    assert host.available_bytes == 8985
    assert host.io_wait_percent == pytest.approx(5)
    assert host.read_bytes_per_s == pytest.approx(40_000)
    assert host.asked_bytes_per_s == pytest.approx(50_000)


def test_readings_that_straddle_an_edge_count_in_proportion() -> None:
    readings = [make_reading(i) for i in range(21)]
    idle = [replace(r, thread_cpu_ns={}, cpu_ns=min(r.cpu_ns, 1200 * MS)) for r in readings]
    track = make_track(readings=tuple(readings[:11] + idle[11:]))
    host = measured(track, (950 * MS, 1350 * MS))
    assert host.cores_busy == pytest.approx(0.15)
    assert host.threads["python_main"] == pytest.approx(7.5)


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
    assert "host samples" in found.reason


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
    (found,) = hot_lines([RecordedStacks("fit", 50, [hot])])
    assert found.code == code


WINDOWS = [make_host_window("baseline", 200, 400), make_host_window("stacks", 400, 500)]


def test_one_row_for_each_span_between_readings() -> None:
    rows = host_samples(make_track(7), WINDOWS, started_ns=-50 * MS, cores_allowed=2.0)
    assert [row.at_ms for row in rows] == [150, 250, 350, 450, 550, 650]
    seen = [OUTSIDE, OUTSIDE, "baseline", "baseline", "stacks", OUTSIDE]
    assert [row.window for row in rows] == seen
    first = rows[0]
    assert first.cpu_percent == pytest.approx(60)
    assert first.rss_bytes == 1001
    assert first.available_bytes == 8999
    waits = [row.io_wait_percent for row in rows]
    assert waits == [None, None, None, None, 5.0, None], "asked at the first and the sixth reading"
    assert first.read_bytes_per_s == pytest.approx(40_000)


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


def test_a_baseline_too_short_for_the_sampler_is_taken_with_the_stacks_after_it() -> None:
    """It touches one reading's span; those up to the end of the stacks are seven."""
    baseline = make_window("baseline", make_block(4, 20.0, start_ms=510.0))
    stacks = make_window("stacks", make_block(30, 20.0, start_ms=600.0))
    short = make_recording(windows=[baseline])
    longer = make_recording(windows=[baseline, stacks])
    other = make_window("stacks", make_block(30, 20.0, start_ms=600.0), loop_id="loop2")

    found = host_of_loop(make_track(), longer, longer.loops[0], 2.0)
    assert found.cores_busy == 1.2
    for recording in (short, make_recording(windows=[baseline, other])):
        assert isinstance(host_of_loop(make_track(), recording, recording.loops[0], 2.0), Missing)
