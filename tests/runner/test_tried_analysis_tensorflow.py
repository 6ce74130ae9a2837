"""Whole analyses: what trials confirm and leave behind, and the ledger of a run to its end."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from pipediag.runner.analysis import AnalysisRequest, analyse
from pipediag.runner.build_session import OBSERVED_AND_OFFERED, STOPPED
from pipediag.runner.progress import Notice, Shown
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run, RunPart
from pipediag.session.model import Session
from pipediag.session.store import load_session
from pipediag.trials import Decided

pytestmark = pytest.mark.tensorflow

WAITS = """
    import time

    import keras
    import numpy as np
    import tensorflow as tf

    def fetch(key):
        time.sleep(0.002)
        return np.float32([key, 1])

    def lookup(key):
        return tf.ensure_shape(tf.numpy_function(fetch, [key], tf.float32), [2]), 1.0

    dataset = tf.data.Dataset.range(10**6).map(lookup).batch(8)  # culprit
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(dataset, verbose=0)
"""


def serial_map(session: Session) -> Finding:
    found = [one for one in session.findings if one.rule == "parallel-map"]
    (finding,) = [one for one in found if one.status == "fail"]
    return finding


def test_more_calls_in_flight_are_confirmed_and_head_the_report(tmp_path: Path) -> None:
    script, report = tmp_path / "waits.py", tmp_path / "report"
    script.write_text(dedent(WAITS), encoding="utf-8")
    events: list[Shown] = []
    request = AnalysisRequest(str(script), output=report, steps=30, budget_s=40, timeout_s=120)
    session = analyse(request, events.append).session
    assert load_session(report) == session

    finding = serial_map(session)
    assert finding.trial.state == "confirmed"
    # Fewer calls of a step may gain on top of it, which depends on the machine.
    assert finding.edit.id in session.combined.findings
    assert session.patch.left_out == []
    assert "range(10**6).map(lookup, num_parallel_calls=16).batch(8)  # culprit" in (
        session.patch.diff or ""
    )
    assert {block.arm for block in session.trials.blocks} >= {"base", "parallel-map:op2"}
    assert session.findings[0] == finding
    assert "confirmed" in [event.trial.state for event in events if isinstance(event, Decided)]


SHORT = """
    import threading
    import time

    import keras
    import numpy as np
    import tensorflow as tf

    with open("runs", "a") as runs:
        runs.write("run\\n")

    counting = threading.Lock()  # nobody knows who else waits for it

    def fetch(key):
        time.sleep(0.004)
        with counting:
            pass
        return np.float32([key, 1])

    def lookup(key):
        return tf.ensure_shape(tf.numpy_function(fetch, [key], tf.float32), [2]), 1.0

    class Log(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            with open("log", "a") as log:
                log.write(f"{batch}\\n")

    dataset = tf.data.Dataset.range(40 * 8).map(lookup).batch(8)
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(dataset, verbose=0, callbacks=[Log()])
"""


def test_a_second_run_holds_the_loop_and_the_session_stays_that_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short.py").write_text(dedent(SHORT), encoding="utf-8")
    events: list[Shown] = []
    request = AnalysisRequest(
        script="short.py",
        output=Path("report"),
        budget_s=20,
        timeout_s=150,
        run_to_end=True,
        rerun=True,
    )
    result = analyse(request, events.append)
    session = result.session
    assert load_session(result.directory) == session
    assert not [entry for entry in result.directory.iterdir() if entry.name.startswith(".")]
    assert (result.child.outcome, result.child.script_status) == ("finished", 0)
    assert Path("runs").read_text() == "run\n" * 2
    [announced] = [
        event for event in events if isinstance(event, Notice) and event.shown == "anywhere"
    ]
    assert "could be tried" in announced.text
    assert session.script.outcome == "finished"
    [loop] = session.loops
    assert loop.steps == 40
    assert session.trials is not None, session.trials_missing
    assert (session.trials.loop_id, session.trials.consumer) == (loop.id, "training")
    assert session.trials.used_s <= 12 + 10  # a block may be under way when the time is up
    trial = serial_map(session).trial
    assert trial.blocks, trial  # what its blocks say hangs on the machine
    assert session.script.second_run in session.notes
    assert session.notes[-1] == STOPPED


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
    assert session.trials_missing == OBSERVED_AND_OFFERED
    outside = {"startup", "before_training", "compile", "after_training"}
    of_loop = {"epoch_start", "steps", "evaluation", "epoch_end"}
    assert {part.part for part in run.parts} == outside | of_loop


def test_a_callback_is_told_with_its_line_and_what_it_took(run: Run) -> None:
    saves = row(run, "the callback Saves", "hook")
    assert saves.part == "epoch_end"
    assert saves.count >= 2
    assert saves.seconds >= 0.2 * saves.count  # a sleep is never shorter than asked for
    notes = row(run, "the callback LambdaCallback", "function")
    assert notes.seconds >= 0.1 * notes.count


def test_validations_calls_lines_and_imports_are_told_apart(run: Run) -> None:
    evaluation = {(one.what, one.line) for one in run.parts if one.part == "evaluation"}
    assert ("validation in `fit`", line("fit")) in evaluation
    assert ("`predict` in the callback Scores", line("scores")) in evaluation
    assert ("`evaluate`", line("evaluate")) in evaluation
    assert row(run, "the step of `fit`", "fit").part == "compile"
    assert row(run, "imports", "imports").part == "startup"
    before = row(run, "the script's own line", "before")
    assert (before.part, before.seconds >= 0.2) == ("before_training", True)
    assert row(run, "the script's own line", "after").part == "after_training"
