"""`--loop` on a script with three training loops, the second of which takes longest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipediag.session.model import Session
from pipediag.session.store import load_session

pytestmark = pytest.mark.tensorflow

SCRIPT = """\
import time

import keras
import numpy as np
import tensorflow as tf

x = np.ones((320, 8), "float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(1))).batch(8)


def waited(features, labels):
    time.sleep(0.03)
    return features, labels


def slowly(features, labels):
    features, labels = tf.numpy_function(waited, [features, labels], [tf.float32, tf.float32])
    return tf.ensure_shape(features, (None, 8)), tf.ensure_shape(labels, (None,))


model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(dataset, epochs=3, verbose=0)  # first
model.fit(dataset.map(slowly), epochs=3, verbose=0)  # longest
model.fit(dataset, epochs=3, verbose=0)  # last
print("through")
"""


def line(text: str) -> int:
    [number] = [at for at, one in enumerate(SCRIPT.splitlines(), 1) if one.endswith(text)]
    return number


def analysed(directory: Path, *options: str) -> tuple[Session, str]:
    script = directory / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    windows = ["--steps", "15", "--budget", "0"]
    command = [sys.executable, "-m", "pipediag", "analyze", *windows, *options, "train.py"]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    return load_session(directory / "reports" / "train"), done.stdout


def diagnosed(session: Session) -> int | None:
    loop = session.diagnosed_loop()
    return None if loop is None else loop.line


def test_of_a_short_script_the_longest_loop_is_taken_and_the_choice_is_said(
    tmp_path: Path,
) -> None:
    session, printed = analysed(tmp_path, "--loop", "longest")
    assert diagnosed(session) == line("# longest")
    assert printed == "through\n"
    assert sum(loop.role == "training" for loop in session.loops) == 3
    assert any("3 training loops" in note for note in session.notes), session.notes


def test_the_loop_at_a_line_is_taken_though_others_train_longer(tmp_path: Path) -> None:
    wanted = line("# last")
    session, _ = analysed(tmp_path, "--loop", str(wanted))
    assert diagnosed(session) == wanted
    assert session.steps is not None
    assert {window.loop_id for window in session.windows} == {
        loop.id for loop in session.loops if loop.line == wanted
    }
