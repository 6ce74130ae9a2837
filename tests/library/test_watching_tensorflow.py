from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipediag.runner.output import REPORT_FILES
from tests.capture.captured import CHECKOUT

pytestmark = pytest.mark.tensorflow

PROGRAM = Path(__file__).with_name("watched_program.py")
LINES = PROGRAM.read_text(encoding="utf-8").splitlines()


def line(text: str) -> int:
    [number] = [at for at, one in enumerate(LINES, start=1) if text in one]
    return number


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory, temporary = tmp_path_factory.mktemp("program"), tmp_path_factory.mktemp("temporary")
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(temporary)}
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
    left = [path for path in temporary.iterdir() if path.name != "__pycache__"]
    assert not left, "something is left over"
    report: dict[str, Any] = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    return {**report, "stderr": done.stderr}


def test_a_fit_is_measured_and_goes_on_to_its_end(report: dict[str, Any]) -> None:
    fit = report["fit"]
    assert (fit["call"], fit["outcome"], fit["status"]) == ("watch", "finished", 0)
    assert fit["path"] == str(PROGRAM)
    assert fit["steps"] >= 15
    assert fit["loops"] == [["keras", "training", line("epochs=3, verbose=0)"), 240]]
    assert "input_wait" in fit["breakdown"]
    assert fit["missing"] is None


def test_its_report_is_that_of_the_command(report: dict[str, Any]) -> None:
    assert set(report["files"]) >= REPORT_FILES
    assert report["fit"]["directory"] == "fit"
    assert report["loop"]["directory"] is None


def test_datasets_iterators_and_functions_from_before_are_known(report: dict[str, Any]) -> None:
    loop = report["loop"]
    assert ["eager", "training", line("# trains"), 200] in loop["loops"]
    assert loop["kinds"][:4] == ["from_tensor_slices", "map", "batch", "repeat"]
    assert loop["lines"][1] == line("def doubled")


def test_a_function_from_before_that_only_reads_its_weights_does_not_train(
    report: dict[str, Any],
) -> None:
    [looks] = [loop for loop in report["loop"]["loops"] if loop[1] != "training"]
    assert looks == ["eager", "validation", line("for batch in dataset:"), 80]


def test_a_watch_within_another_does_nothing_and_says_so_once(report: dict[str, Any]) -> None:
    assert report["within"]["missing"].startswith("another analysis is running")
    said = [one for one in report["stderr"].splitlines() if one.startswith("pipediag: ")]
    assert said == [f"pipediag: {report['within']['missing']}"]


def test_a_callback_measures_its_fit(report: dict[str, Any]) -> None:
    callback = report["callback"]
    assert (callback["call"], callback["outcome"]) == ("callback", "finished")
    assert callback["loops"] == [["keras", "training", line("callbacks=[callback])"), 240]]
    assert callback["callbacks"] == [], "it counts itself among the user's callbacks"
    assert "epoch_end" in callback["parts"]
    assert callback["directory"] == "callback"


def test_what_the_block_raises_passes_and_is_reported(report: dict[str, Any]) -> None:
    assert report["error"] == "mine"
    raised = report["raised"]
    assert (raised["outcome"], raised["status"]) == ("raised", 1)
    assert raised["detail"] == "ZeroDivisionError: mine"
    assert raised["steps"] >= 15


def test_a_fit_that_raises_ends_its_callback_too(report: dict[str, Any]) -> None:
    cut = report["cut"]
    assert cut["outcome"] == "raised"
    assert cut["detail"] == "`fit` did not come to its end."
    assert cut["callbacks"] == ["Fails"]


IMPORTS_WITHIN = """
import sys

import pipediag

with pipediag.watch(steps=15) as watching:
    import tensorflow as tf
    import keras

    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    dataset = tf.data.Dataset.from_tensor_slices((tf.ones((640, 4)), tf.ones(640))).batch(8)
    model.fit(dataset, epochs=2, verbose=0)
[loop] = watching.result.session.loops
print(loop.kind, loop.steps, watching.result.session.steps.count)
print(*[op.line for op in watching.result.session.pipeline.ops if op.line])
print(*[type(one).__name__ for one in sys.meta_path if type(one).__module__.startswith("pipediag")])
"""


def test_what_is_imported_within_the_block_is_measured_too(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(IMPORTS_WITHIN, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["keras 160 15", "12 12", ""]


def test_no_hook_and_no_mark_is_left(report: dict[str, Any]) -> None:
    assert report["unhooked"] == []
    assert report["marks"] == []
