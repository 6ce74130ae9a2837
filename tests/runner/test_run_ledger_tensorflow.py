"""The ledger of a whole run: a `fit` with validation and callbacks, left to run to its end."""

from __future__ import annotations

from textwrap import dedent

import pytest

from pipediag.runner.analysis import AnalysisRequest, analyse
from pipediag.session.ledger import Run, RunPart
from pipediag.session.model import Session

pytestmark = pytest.mark.tensorflow

SCRIPT = """
    import os
    import threading
    import time

    import keras  # imports
    import numpy as np
    import tensorflow as tf

    class Saves(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            time.sleep(0.2)  # hook

    def notes(epoch, logs):
        time.sleep(0.1)  # function

    class Scores(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.predict(slow, verbose=0)  # scores

    def waits(x, y):
        time.sleep(0.02)
        return x, y

    def slowly(x, y):
        x_slow, y_slow = tf.numpy_function(waits, [x, y], [tf.float32, tf.float32])
        return tf.ensure_shape(x_slow, [4, 3]), tf.ensure_shape(y_slow, [4, 1])

    class_before = dict(vars(Saves))
    rows = np.random.default_rng(7).random((64, 3)).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((rows, rows[:, :1])).batch(4)
    slow = data.map(slowly)  # rows of less than a five-hundredth of the run are not told apart
    time.sleep(0.4)  # before

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    callbacks = [Saves(), keras.callbacks.LambdaCallback(on_epoch_end=notes), Scores()]
    history = model.fit(data, epochs=3, validation_data=slow, verbose=0, callbacks=callbacks)  # fit
    model.evaluate(slow, verbose=0)  # evaluate
    time.sleep(0.4)  # after
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    threads = [thread.name for thread in threading.enumerate()]
    assert threads == ["MainThread"], threads
    assert dict(vars(Saves)) == class_before
    assert len(history.epoch) == 3
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    directory = tmp_path_factory.mktemp("ledger")
    script = directory / "train.py"
    script.write_text(dedent(SCRIPT), encoding="utf-8")
    request = AnalysisRequest(
        script=str(script),
        output=directory / "report",
        steps=10,
        budget_s=0,
        timeout_s=120,
        run_to_end=True,
    )
    return analyse(request, lambda _: None).session


@pytest.fixture(scope="module")
def run(session: Session) -> Run:
    assert session.script.outcome == "finished"
    assert session.run is not None, session.run_missing
    return session.run


def line(mark: str) -> int:
    lines = dedent(SCRIPT).splitlines()
    (found,) = [n for n, text in enumerate(lines, 1) if text.endswith(f"# {mark}")]
    return found


def row(run: Run, what: str, mark: str) -> RunPart:
    (found,) = [one for one in run.parts if (one.what, one.line) == (what, line(mark))]
    return found


def test_each_second_of_the_process_is_in_the_ledger_or_pipediags(
    session: Session, run: Run
) -> None:
    assert sum(part.seconds for part in run.parts) == pytest.approx(run.total_s)
    assert sum(part.percent for part in run.parts) == pytest.approx(100.0)
    assert run.total_s + run.pipediag_s == pytest.approx(session.wall_s, abs=1e-3)
    assert (run.scope, run.projected_total_s, run.projected_missing) == ("run", None, None)
    assert (run.epochs_seen, run.epochs_planned, run.not_seen) == (3.0, 3, [])


def test_each_part_is_there(run: Run) -> None:
    assert {part.part for part in run.parts} == {
        "startup",
        "before_training",
        "compile",
        "epoch_start",
        "steps",
        "evaluation",
        "epoch_end",
        "after_training",
    }


def test_a_callback_is_told_with_its_line_and_what_it_took(run: Run) -> None:
    saves = row(run, "the callback Saves", "hook")
    assert saves.part == "epoch_end"
    assert saves.count >= 2
    assert saves.seconds >= 0.2 * saves.count  # a sleep is never shorter than asked for
    notes = row(run, "the callback LambdaCallback", "function")
    assert notes.seconds >= 0.1 * notes.count


def test_validations_and_calls_are_told_apart(run: Run) -> None:
    evaluation = {(one.what, one.line) for one in run.parts if one.part == "evaluation"}

    assert ("validation in `fit`", line("fit")) in evaluation
    assert ("`predict` in the callback Scores", line("scores")) in evaluation
    assert ("`evaluate`", line("evaluate")) in evaluation


def test_the_step_that_was_compiled_is_that_of_fit(run: Run) -> None:
    assert row(run, "the step of `fit`", "fit").part == "compile"


def test_lines_and_imports_are_told(run: Run) -> None:
    assert row(run, "imports", "imports").part == "startup"
    before = row(run, "the script's own line", "before")
    assert (before.part, before.seconds >= 0.2) == ("before_training", True)
    assert row(run, "the script's own line", "after").part == "after_training"
