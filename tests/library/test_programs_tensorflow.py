"""Programs that are analysed and watched in their own process, and what is left of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipediag.measures.verdict.decision import NOTHING_TRAINED
from pipediag.session.recording import EARLIER
from tests.capture.captured import environment

pytestmark = pytest.mark.tensorflow

Report = dict[str, Any]


def run(program: Path, directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, str(program), str(directory / "report.json")],
        cwd=directory,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


class Program:
    """A program next to this file, which writes a report of its results."""

    def __init__(self, name: str) -> None:
        self.path = Path(__file__).with_name(name)

    def line(self, text: str) -> int:
        """Number of its one line with this text."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        [number] = [at for at, one in enumerate(lines, start=1) if text in one]
        return number

    def report(self, factory: pytest.TempPathFactory) -> Report:
        directory, temporary = factory.mktemp("program"), factory.mktemp("temporary")
        done = run(self.path, directory, TMPDIR=str(temporary))
        # Code that AutoGraph writes there is compiled next to it, without pipediag too.
        left = [path for path in temporary.iterdir() if path.name != "__pycache__"]
        assert not left, "something is left over"
        text = (directory / "report.json").read_text(encoding="utf-8")
        made = [path.name for path in directory.iterdir()]
        return {**json.loads(text), "stderr": done.stderr, "made": made}


ANALYSED, WATCHED = Program("analysed_program.py"), Program("watched_program.py")


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return ANALYSED.report(tmp_path_factory)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return WATCHED.report(tmp_path_factory)


def test_a_model_is_measured_as_by_the_command(analysed: Report) -> None:
    fit = analysed["fit"]
    assert (fit["call"], fit["outcome"]) == ("analyze", "stopped")
    assert fit["steps"] >= 15
    assert fit["loops"] == [["keras", "training", ANALYSED.line('"fit": reported')]]
    assert "input_wait" in fit["breakdown"]


@pytest.mark.parametrize("analysis", ["fit", "unbuilt"])
def test_of_a_dataset_from_before_no_operation_is_known(analysed: Report, analysis: str) -> None:
    assert analysed[analysis]["kinds"][0] == EARLIER
    assert any("made before Pipediag was there" in note for note in analysed[analysis]["notes"])


def test_no_change_of_a_dataset_from_before_is_tried(analysed: Report) -> None:
    assert analysed["fit"]["trials"] in ([], ["not_tried"])


def test_a_function_that_makes_the_dataset_tells_its_lines(analysed: Report) -> None:
    step = analysed["step"]
    assert step["loops"] == [["eager", "training", ANALYSED.line('"step": reported')]]
    assert step["kinds"][:3] == ["from_tensor_slices", "map", "batch"]
    assert step["lines"][1] == ANALYSED.line("# made here")
    assert (step["steps"] >= 15, step["epochs"]) == (True, 90)


def test_a_pipeline_alone_says_nothing_of_a_step(analysed: Report) -> None:
    alone = analysed["input"]
    assert alone["call"] == "analyze_input"
    assert alone["steps"] >= 15
    assert alone["breakdown"] is None
    assert alone["run_missing"] == NOTHING_TRAINED
    assert alone["verdict"].startswith("The pipeline alone takes ")


def test_what_the_step_raises_is_the_callers(analysed: Report) -> None:
    assert analysed["raised"] == "ZeroDivisionError: division by zero"


def test_a_model_that_is_not_built_is_and_trains_as_it_would_have(analysed: Report) -> None:
    unbuilt = analysed["unbuilt"]
    assert unbuilt["steps"] >= 15
    assert any(note.startswith("The model was not built") for note in unbuilt["notes"])
    assert not any(note.startswith("The model was not built") for note in analysed["fit"]["notes"])
    assert analysed["trained alike"]


def test_what_can_not_be_measured_is_refused(analysed: Report) -> None:
    assert "the model is not compiled" in analysed["uncompiled"]
    assert "the model is not built" in analysed["odd"]
    assert "ValueError" in analysed["odd"]
    assert analysed["no model"] == "TypeError: model is a int; give a Keras model or a function."
    assert "callbacks" in analysed["no fit"]
    assert "the dataset has no element" in analysed["empty"]


def test_nothing_of_it_is_left(analysed: Report) -> None:
    assert analysed["made"] == ["report.json"]
    assert analysed["kept"]
    assert analysed["optimizer"] == 0
    assert analysed["unhooked"] == [True] * 5


def test_a_fit_is_measured_and_goes_on_to_its_end(watched: Report) -> None:
    fit = watched["fit"]
    assert (fit["call"], fit["outcome"], fit["status"]) == ("watch", "finished", 0)
    assert fit["path"] == str(WATCHED.path)
    assert fit["steps"] >= 15
    assert fit["loops"] == [["keras", "training", WATCHED.line("epochs=3, verbose=0)"), 240]]
    assert "input_wait" in fit["breakdown"]
    assert fit["missing"] is None


def test_its_report_is_that_of_the_command(watched: Report) -> None:
    assert {"session.json", "report.html", "run.csv", "trace"} <= set(watched["files"])
    assert watched["fit"]["directory"] == "fit"
    assert watched["loop"]["directory"] is None


def test_iterators_and_functions_from_before_are_known(watched: Report) -> None:
    loop = watched["loop"]
    assert ["eager", "training", WATCHED.line("# trains"), 200] in loop["loops"]
    assert loop["kinds"][0] == EARLIER


def test_a_function_from_before_that_only_reads_its_weights_does_not_train(watched: Report) -> None:
    [looks] = [loop for loop in watched["loop"]["loops"] if loop[1] != "training"]
    assert looks == ["eager", "validation", WATCHED.line("for batch in dataset:"), 80]


def test_a_watch_within_another_does_nothing_and_says_so_once(watched: Report) -> None:
    assert watched["within"]["missing"].startswith("another analysis is running")
    said = [one for one in watched["stderr"].splitlines() if one.startswith("pipediag: ")]
    assert said == [f"pipediag: {watched['within']['missing']}"]


def test_a_callback_measures_its_fit(watched: Report) -> None:
    callback = watched["callback"]
    assert (callback["call"], callback["outcome"]) == ("callback", "finished")
    assert callback["loops"] == [["keras", "training", WATCHED.line("callbacks=[callback])"), 240]]
    assert callback["callbacks"] == [], "it counts itself among the user's callbacks"
    assert "epoch_end" in callback["parts"]
    assert callback["directory"] == "callback"


def test_what_the_block_raises_passes_and_is_reported(watched: Report) -> None:
    assert watched["error"] == "mine"
    raised = watched["raised"]
    assert (raised["outcome"], raised["status"]) == ("raised", 1)
    assert raised["detail"] == "ZeroDivisionError: mine"
    assert raised["steps"] >= 5  # of 60, however long the first ones take


def test_a_fit_that_raises_ends_its_callback_too(watched: Report) -> None:
    cut = watched["cut"]
    assert cut["outcome"] == "raised"
    assert cut["detail"] == "`fit` did not finish."
    assert cut["callbacks"] == ["Fails"]
    assert watched["following"]["outcome"] == watched["again"]["outcome"] == "finished"


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
    assert run(program, tmp_path).stdout.splitlines() == ["keras 160 15", "12 12", ""]


def test_no_hook_and_no_mark_is_left(watched: Report) -> None:
    assert watched["unhooked"] == []
    assert watched["marks"] == []
