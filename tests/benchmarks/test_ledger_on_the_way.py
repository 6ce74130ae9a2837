"""A run that went on to its end, as it was when its loop had been measured."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks.ledger_comparison import undisturbed
from benchmarks.ledger_on_the_way import OnTheWay, kept_on_the_way, read_on_the_way, until
from benchmarks.ledger_stamps import Stamps
from pipediag.session.ledger import Run
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


def save(capture: Path, windows: list[RecordedWindow]) -> None:
    loop = make_recorded_loop(planned_steps=200)
    beside = capture / "part"
    recording = make_recording(started_ns=0, loops=[loop], windows=windows)
    beside.write_text(json.dumps(asdict(recording)), encoding="utf-8")
    beside.replace(capture / RECORDING_FILE)


def wait_for(folder: Path, number: int) -> None:
    limit = time.monotonic() + 30
    while len(list(folder.glob(f"*-{RECORDING_FILE}"))) < number:
        assert time.monotonic() < limit
        time.sleep(0.005)
