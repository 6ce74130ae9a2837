"""A training measured by a test of a project, as its own pytest runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.probe import environment

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.tensorflow

LIMIT_S = 280

PROJECT = """
import time

import tensorflow as tf
from pipediag.pytest_plugin import measurements

# How busy the machine of this test is decides nothing here.
measurements.MOST_PERCENT = 1000.0
WINDOWS = {"steps": 15}


class Trained:
    def __init__(self, takes_s):
        self.takes_s = takes_s
        self.variable = tf.Variable(0.0)

    def __call__(self, batch):
        self.variable.assign_add(tf.reduce_mean(batch))
        time.sleep(self.takes_s)


def wait(x):
    time.sleep(0.02)
    return x


def slow():
    return tf.data.Dataset.range(40).map(lambda x: tf.py_function(wait, [x], tf.int64)).map(number)


def number(x):
    return tf.cast(tf.ensure_shape(x, []), tf.float32)


def test_waits_for_its_input(pipediag):
    model = Trained(0.0)
    pipediag.assert_not_input_bound(slow, model, **WINDOWS)


def test_has_its_input_at_once(pipediag):
    model = Trained(0.02)
    made = tf.data.Dataset.range(40).map(number)
    result = pipediag.assert_not_input_bound(made, model, **WINDOWS)
    assert result.session.steps.count >= 15
    assert float(model.variable) == 0.0
"""


def test_what_waits_fails_with_its_line_and_what_does_not_passes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    # A lock of its own: whatever else is measured here is not waited for.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    pytester.makepyfile(test_training=PROJECT)
    # What is left to the garbage collector would be an error in a project that is as strict.
    strict = [
        "-W",
        "error::ResourceWarning",
        "-W",
        "error::pytest.PytestUnraisableExceptionWarning",
    ]
    result = pytester.runpytest_subprocess(
        "-rA", "-p", "no:cacheprovider", *strict, timeout=LIMIT_S
    )
    result.assert_outcomes(passed=1, failed=1)
    said = result.stdout.str()
    place = 1 + PROJECT.strip().splitlines().index(
        "    return tf.data.Dataset.range(40).map(lambda x: tf.py_function(wait, [x], "
        "tf.int64)).map(number)"
    )
    assert "PASSED test_training.py::test_has_its_input_at_once" in said
    assert "over the limit of 20 %." in said
    assert f"Line: test_training.py:{place}" in said
    [report] = (pytester.path / "reports" / "pytest").glob("*/report.html")
    assert str(report.relative_to(pytester.path)) in said
