"""Whole analyses with trials: what is confirmed, and what a trial that goes wrong leaves behind."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from pipediag.runner.analysis import AnalysisRequest, analyse
from pipediag.runner.build_session import OBSERVED_AND_OFFERED
from pipediag.runner.progress import RunsAgain, Shown
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.store import load_session
from pipediag.trials.executor import Decided

pytestmark = pytest.mark.tensorflow

WAITS = """
    import os
    import threading
    import time

    import keras
    import numpy as np
    import tensorflow as tf

    running = threading.Lock()

    def fetch(key):
        alone = running.acquire(blocking=False)
        if not alone:
            OVERLAPPED
        time.sleep(0.002)
        if alone:
            running.release()
        return np.float32([key, 1])

    def lookup(key):
        return tf.ensure_shape(tf.numpy_function(fetch, [key], tf.float32), [2]), 1.0

    dataset = tf.data.Dataset.range(10**6).map(lookup).batch(8)  # culprit
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(dataset, verbose=0)
"""


def analysed(directory: Path, overlapped: str) -> tuple[Session, list[Shown]]:
    script = directory / "waits.py"
    script.write_text(dedent(WAITS).replace("OVERLAPPED", overlapped), encoding="utf-8")
    events: list[Shown] = []
    request = AnalysisRequest(
        script=str(script),
        output=directory / "report",
        steps=30,
        budget_s=40,
        timeout_s=120,
    )
    result = analyse(request, events.append)
    assert load_session(result.directory) == result.session
    return result.session, events


def serial_map(session: Session) -> Finding:
    found = [one for one in session.findings if one.rule == "parallel-map"]
    (finding,) = [one for one in found if one.status == "fail"]
    return finding


def test_more_calls_in_flight_are_confirmed_and_head_the_report(tmp_path: Path) -> None:
    session, events = analysed(tmp_path, "pass")

    finding = serial_map(session)
    assert finding.trial.state == "confirmed"
    assert finding.trial.speedup is not None
    assert finding.trial.speedup > 2  # eight calls of 2 ms that wait; sixteen threads
    assert session.combined.findings == [finding.edit.id if finding.edit else None]
    assert session.patch.left_out == []
    assert "range(10**6).map(lookup, num_parallel_calls=16).batch(8)  # culprit" in (
        session.patch.diff or ""
    )
    assert {block.arm for block in session.trials.blocks} >= {"base", "parallel-map:op2"}
    assert session.findings[0] == finding
    assert "confirmed" in [event.state for event in events if isinstance(event, Decided)]


def test_an_edit_that_kills_the_process_costs_only_itself(tmp_path: Path) -> None:
    session, _ = analysed(tmp_path, "os.kill(os.getpid(), 9)")

    assert session.verdict.bottleneck == "input"
    assert session.script.outcome == "stopped"
    assert "A trial ended it" in str(session.script.detail)
    trial = serial_map(session).trial
    assert trial.state in ("not_tried", "inconclusive")
    assert "SIGKILL" in str(trial.reason)


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


def short_analysed(directory: Path, *, rerun: bool) -> tuple[Session, list[Shown]]:
    (directory / "short.py").write_text(dedent(SHORT), encoding="utf-8")
    events: list[Shown] = []
    request = AnalysisRequest(
        script="short.py",
        output=directory / "report",
        budget_s=20,
        timeout_s=150,
        run_to_end=True,
        rerun=rerun,
    )
    result = analyse(request, events.append)
    assert load_session(result.directory) == result.session
    assert not [entry for entry in result.directory.iterdir() if entry.name.startswith(".")]
    assert (result.child.outcome, result.child.script_status) == ("finished", 0)
    return result.session, events


def test_without_the_flag_the_report_says_what_a_second_run_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session, events = short_analysed(tmp_path, rerun=False)

    assert Path("runs").read_text() == "run\n"
    assert session.trials_missing == OBSERVED_AND_OFFERED
    assert serial_map(session).trial.reason == session.trials_missing
    assert not [event for event in events if isinstance(event, RunsAgain)]


def test_a_second_run_holds_the_loop_and_the_session_stays_that_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session, events = short_analysed(tmp_path, rerun=True)

    assert Path("runs").read_text() == "run\n" * 2
    [announced] = [event for event in events if isinstance(event, RunsAgain)]
    assert announced.changes >= 1
    assert session.script.outcome == "finished"
    [loop] = session.loops
    assert loop.steps == 40
    assert session.trials is not None, session.trials_missing
    assert (session.trials.loop_id, session.trials.consumer) == (loop.id, "training")
    assert session.trials.used_s <= 20 + 10  # a block may be under way when the time is up
    trial = serial_map(session).trial
    assert trial.blocks, trial  # what its blocks say hangs on the machine
    assert session.script.second_run in session.notes
    assert session.script.files_written == ["log", "runs"]
