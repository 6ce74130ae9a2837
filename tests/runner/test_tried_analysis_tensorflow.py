"""Whole analyses with trials: what is confirmed, and what a trial that goes wrong leaves behind."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from pipediag.runner.analysis import AnalysisRequest, analyse
from pipediag.runner.progress import Shown
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
    assert session.combined is not None
    assert session.combined.findings == [finding.edit.id if finding.edit else None]
    assert session.patch is not None
    assert session.patch.left_out == []
    assert "range(10**6).map(lookup, num_parallel_calls=16).batch(8)  # culprit" in (
        session.patch.diff or ""
    )
    assert session.trials is not None
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
