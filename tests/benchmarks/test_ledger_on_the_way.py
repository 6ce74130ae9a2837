"""A run that went on to its end, as it was when its loop had been measured."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks.ledger_comparison import undisturbed
from benchmarks.ledger_on_the_way import (
    OnTheWay,
    first_step_after,
    kept_on_the_way,
    known_by,
    read_on_the_way,
    until,
)
from benchmarks.ledger_stamps import Stamps
from pipediag.session.ledger import Run
from pipediag.session.recorded_loops import RecordedSeam
from pipediag.session.recorded_windows import RecordedWindow
from pipediag.session.settings import RECORDING_FILE, TIMELINE_FILE
from pipediag.session.timeline import SeenLines, Span, Timeline, span_line
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS, SCRIPT

STAMPS = Stamps(
    began_s=100.0,
    ended_s=120.0,
    begun=2,
    legs=({"steps": 8.0, "compile": 2.0}, {"steps": 6.0}, {"after_training": 4.0}),
)


def at(seconds: float, rounds: int = 1) -> OnTheWay:
    run = Run(scope="run", total_s=1.0, projected_total_s=2.0, pipediag_s=0.0, parts=[])
    return OnTheWay(run, int(seconds * 1e9), rounds)


@pytest.mark.parametrize(("seconds", "trainings"), [(104.0, 1), (111.0, 2), (119.0, 3)])
def test_it_speaks_of_the_trainings_until_then(seconds: float, trainings: int) -> None:
    assert at(seconds).trainings(STAMPS) == trainings


def test_of_a_loop_that_the_script_comes_to_again_it_speaks_of_all() -> None:
    assert at(104.0, rounds=3).trainings(STAMPS) == 3


def test_what_pipediag_did_is_no_step_of_the_first_training() -> None:
    legs = undisturbed(STAMPS, 3.0).legs
    assert legs[0] == {"steps": 5.0, "compile": 2.0}
    assert legs[1:] == STAMPS.legs[1:]


def test_what_ends_later_lasts_and_what_begins_later_is_not_there() -> None:
    spans = [
        Span(1, "script", 0, 900),
        Span(2, "imports", 10, 100),
        Span(3, "fit", 200, 800),
        Span(4, "callback", 600, 700),
    ]
    cut = until(Timeline(spans, [SeenLines(0, 100, ()), SeenLines(400, 600, ())]), 500)
    assert [(one.id, one.end_ns) for one in cut.spans] == [(1, None), (2, 100), (3, None)]
    assert [one.end_ns for one in cut.seen] == [100]


@pytest.mark.parametrize(
    ("at_ns", "stops_ns"),
    [(50, 100), (250, 300), (350, 350), (450, 600), (650, 800), (900, 900), (2000, 2000)],
)
def test_a_script_is_stopped_where_a_step_begins(at_ns: int, stops_ns: int) -> None:
    spans = [
        Span(1, "first_call", 90, 300, "one_step"),
        Span(2, "steps", 100, 400, "loop1"),
        Span(3, "evaluation", 420, 580, "evaluate"),
        Span(4, "first_call", 590, 800, "one_step"),
        Span(5, "steps", 600, None, "loop1"),
    ]
    assert first_step_after(Timeline(spans), at_ns) == stops_ns


def test_a_script_without_further_steps_is_not_stopped() -> None:
    spans = [Span(1, "steps", 100, 400, "loop1"), Span(2, "evaluation", 400, 900, "evaluate")]
    assert first_step_after(Timeline(spans), 400) is None


def test_what_came_later_is_not_known() -> None:
    seams = [RecordedSeam(90, 100, 110), RecordedSeam(690, 700, 710)]
    first = make_recorded_loop(started_ns=0, epoch_seams=seams, last_ns=900)
    later = make_recorded_loop(id="loop2", started_ns=600)
    windows = [make_window("baseline", make_block(start_ms=0)), make_window("profile")]
    windows[0].end_ns, windows[1].end_ns = 400, 600
    known = known_by(make_recording(loops=[first, later], windows=windows), 500)
    assert known.windows == windows[:1]
    (loop,) = known.loops
    assert (loop.epoch_seams, loop.last_ns) == (seams[:1], 500)


def test_a_fit_that_comes_again_is_carried_on_from_where_it_is_stopped(tmp_path: Path) -> None:
    spans = [Span(1, "script", 0, 40_000 * MS)]
    for number in range(4):
        begun = 1000 + 5000 * number
        spans += [
            Span(10 * number + 2, "fit", begun * MS, (begun + 4000) * MS, "fit", SCRIPT, 20),
            Span(10 * number + 3, "steps", (begun + 100) * MS, (begun + 4000) * MS, "loop1"),
        ]
    lines = b"".join(map(span_line, spans))
    (tmp_path / TIMELINE_FILE).write_bytes(lines)
    windows = [
        make_window("baseline", make_block(start_ms=1000)),
        make_window("profile", make_block(start_ms=4000)),
    ]
    for number in (1, 2):
        save(tmp_path, windows, planned_rounds=4, elapsed_ns=1, started_ns=0)
        (tmp_path / RECORDING_FILE).rename(tmp_path / f"{number:04}-{RECORDING_FILE}")
    found = read_on_the_way(tmp_path)
    assert found is not None
    assert found.at_ns == windows[1].end_ns + 5_000 * MS  # in the second of them
    assert found.rounds == 4


def test_it_is_carried_on_from_the_first_recording_with_a_profile(tmp_path: Path) -> None:
    output, folder = tmp_path / "to_end", tmp_path / "kept"
    capture = output / ".capture-1"
    capture.mkdir(parents=True)
    spans = [Span(1, "script", 0, 9000 * MS), Span(2, "fit", 10 * MS, 9000 * MS, "fit", SCRIPT, 20)]
    steps = [
        Span(3 + n, "steps", (100 + 200 * n) * MS, (300 + 200 * n) * MS, "loop1") for n in range(40)
    ]
    lines = b"".join(map(span_line, [*spans, *steps]))
    (capture / TIMELINE_FILE).write_bytes(lines)
    baseline = make_window("baseline", make_block(start_ms=100))
    profile = make_window("profile", make_block(start_ms=250))
    later = make_window("profile", make_block(start_ms=5000))
    assert read_on_the_way(folder) is None
    with kept_on_the_way(output, folder):
        for number, windows in enumerate(([baseline], [baseline, profile], [profile, later]), 1):
            save(capture, windows)
            wait_for(folder, number)
    found = read_on_the_way(folder)
    assert found is not None
    assert found.at_ns == profile.end_ns
    assert found.run.projected_total_s is not None


def save(capture: Path, windows: list[RecordedWindow], **overrides: Any) -> None:
    loop = make_recorded_loop(**{"planned_steps": 200, **overrides})
    beside = capture / "part"
    recording = make_recording(started_ns=0, loops=[loop], windows=windows)
    beside.write_text(json.dumps(asdict(recording)), encoding="utf-8")
    beside.replace(capture / RECORDING_FILE)


def wait_for(folder: Path, number: int) -> None:
    limit = time.monotonic() + 30
    while len(list(folder.glob(f"*-{RECORDING_FILE}"))) < number:
        assert time.monotonic() < limit
        time.sleep(0.005)
