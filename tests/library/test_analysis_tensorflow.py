from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipediag.measures.verdict.decision import NOTHING_TRAINED
from tests.capture.captured import CHECKOUT

pytestmark = pytest.mark.tensorflow

PROGRAM = Path(__file__).with_name("analysed_program.py")
LINES = PROGRAM.read_text(encoding="utf-8").splitlines()


def line(text: str) -> int:
    [number] = [at for at, one in enumerate(LINES, start=1) if text in one]
    return number


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("program")
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(directory)}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(directory / "report.json")],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # What AutoGraph writes there is compiled beside it, natively too.
    left = {path.name for path in directory.iterdir()} - {"__pycache__"}
    assert left == {"report.json"}, "something is left over"
    report: dict[str, Any] = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    return report


def test_a_model_is_measured_as_by_the_command(report: dict[str, Any]) -> None:
    fit = report["fit"]
    assert (fit["call"], fit["outcome"]) == ("analyze", "stopped")
    assert fit["steps"] >= 15
    assert fit["loops"] == [["keras", "training", line('"fit": told')]]
    assert "input_wait" in fit["breakdown"]


def test_a_dataset_from_before_is_known_by_what_its_objects_tell(report: dict[str, Any]) -> None:
    assert report["fit"]["kinds"][:3] == ["from_tensor_slices", "map", "batch"]
    assert report["fit"]["lines"][1] == line("def doubled")


def test_a_second_analysis_sees_what_the_first_one_saw(report: dict[str, Any]) -> None:
    first, again = report["fit"], report["again"]
    assert again["steps"] >= 15
    assert (again["kinds"], again["lines"]) == (first["kinds"], first["lines"])


def test_a_function_that_makes_the_dataset_tells_its_lines(report: dict[str, Any]) -> None:
    step = report["step"]
    assert step["loops"] == [["eager", "training", line('"step": told')]]
    assert step["kinds"][:3] == ["from_tensor_slices", "map", "batch"]
    assert step["lines"][1] == line("# made here")
    assert step["steps"] >= 15


def test_a_pipeline_alone_says_nothing_of_a_step(report: dict[str, Any]) -> None:
    alone = report["input"]
    assert alone["call"] == "analyze_input"
    assert alone["steps"] >= 15
    assert alone["breakdown"] is None
    assert alone["run_missing"] == NOTHING_TRAINED
    assert alone["verdict"].startswith("The pipeline alone takes ")


def test_what_the_step_raises_is_the_callers(report: dict[str, Any]) -> None:
    assert report["raised"] == "ZeroDivisionError: division by zero"


def test_a_model_that_is_not_built_is_and_trains_as_it_would_have(report: dict[str, Any]) -> None:
    unbuilt = report["unbuilt"]
    assert unbuilt["steps"] >= 15
    assert any(note.startswith("The model was not built") for note in unbuilt["notes"])
    assert not any(note.startswith("The model was not built") for note in report["fit"]["notes"])
    assert report["trained alike"]


def test_what_can_not_be_measured_is_refused(report: dict[str, Any]) -> None:
    assert "the model is not compiled" in report["uncompiled"]
    assert "the model is not built" in report["odd"]
    assert "ValueError" in report["odd"]
    assert report["no model"] == "TypeError: model is a int; give a Keras model or a function."
    assert "callbacks" in report["no fit"]
    assert "the dataset has no element" in report["empty"]


def test_nothing_of_it_is_left(report: dict[str, Any]) -> None:
    assert report["kept"]
    assert report["optimizer"] == 0
    assert report["unhooked"] == [True] * 5
