"""The log that the installed TensorFlow writes, which no list of ours can keep up with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pipediag.runner.framework_log.lines import folds
from tests.probe import run

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import sys
import tensorflow as tf

tf.print("into the log", output_stream=tf.compat.v1.logging.info)
tf.function(lambda: tf.constant(1.0) * 2, jit_compile=True)()
data = tf.data.Dataset.range(1).map(lambda x: tf.py_function(lambda _: 1 / 0, [x], tf.int64))
try:
    next(iter(data))
except tf.errors.OpError:
    print("caught", file=sys.stderr)
"""


def test_it_is_told_apart_from_what_is_meant_to_be_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "pipediag", "analyze", "-o", "out", "train.py"]

    done = run(command, tmp_path)

    shown = done.stderr.encode().splitlines()
    kept = (tmp_path / "out/framework.log").read_bytes().splitlines()
    assert not any(map(folds, shown))
    assert f"{len(kept)} lines of TensorFlow's log folded" in done.stderr
    assert any(b"cpu_feature_guard" in line for line in kept)
    assert any(b"Compiled cluster using XLA" in line for line in kept)
    assert any(line.endswith(b"] into the log") for line in shown)
    assert b"ZeroDivisionError: division by zero" in shown
    assert "caught" in done.stderr
