"""A training that is measured every so often: what is kept of it, and what is left of us."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipediag.session.model import Session
from pipediag.session.store import load_session
from tests.capture.captured import CHECKOUT

pytestmark = pytest.mark.tensorflow

PROGRAM = Path(__file__).with_name("measured_again_program.py")
LINES = PROGRAM.read_text(encoding="utf-8").splitlines()
TAG = "pipediag/steps.median_ms"


def line(text: str) -> int:
    [number] = [at for at, one in enumerate(LINES, start=1) if text in one]
    return number


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory, temporary = tmp_path_factory.mktemp("program"), tmp_path_factory.mktemp("temporary")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "report.json"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "pipediag: " not in done.stderr
    assert not list(temporary.iterdir()), "something is left over"
    return directory


@pytest.fixture(scope="module")
def report(directory: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    return report


@pytest.fixture(scope="module")
def sessions(directory: Path) -> list[Session]:
    return [load_session(directory / "out" / f"interval-{number}") for number in (1, 2, 3)]


def test_between_two_measurements_nothing_is_hooked(report: dict[str, Any]) -> None:
    assert report["between"] == []
    assert report["threads"], "the program sees a thread of ours"


def test_after_the_training_nothing_is_hooked(report: dict[str, Any]) -> None:
    assert report["after"] == []


def test_each_measurement_is_of_the_loop_that_ran(sessions: list[Session]) -> None:
    places = [(loop.line, loop.role) for one in sessions if (loop := one.diagnosed_loop())]
    fit = (line("model.fit(dataset"), "training")
    assert places == [(line("for x, y in dataset:"), "training"), fit, fit]
    assert [one.steps.count >= 15 for one in sessions if one.steps] == [True] * 3
    assert all(one.breakdown for one in sessions)


def test_a_session_tells_which_it_is_and_of_its_own_time_alone(sessions: list[Session]) -> None:
    assert [one.script.interval for one in sessions] == [1, 2, 3]
    assert {one.script.outcome for one in sessions} == {"finished"}
    for one in sessions:
        assert one.run is not None
        assert one.run.projected_total_s is None
        assert one.run.total_s <= one.wall_s + 0.01


def test_each_is_listed_with_a_report(directory: Path, sessions: list[Session]) -> None:
    out = directory / "out"
    with (out / "intervals.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["interval"] for row in rows] == ["1", "2", "3"]
    medians = [one.steps.median_ms for one in sessions if one.steps]
    assert [float(row["steps.median_ms"]) for row in rows] == medians
    assert all((out / row["directory"] / "report.html").is_file() for row in rows)
    assert list(out.glob("*/trace")) == [out / "interval-3" / "trace"], "profiles are large"


def test_tensorboard_gets_a_point_of_each(report: dict[str, Any], sessions: list[Session]) -> None:
    points = [(step, value) for step, tag, value in report["points"] if tag == TAG]
    medians = [one.steps.median_ms for one in sessions if one.steps]
    assert points == [(at, pytest.approx(one)) for at, one in enumerate(medians, start=1)]


def test_the_result_is_the_last_measurement(report: dict[str, Any]) -> None:
    assert Path(report["first"]).name == "interval-1"
    assert Path(report["last"]).name == "interval-3"
