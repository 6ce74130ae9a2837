"""Interpreter exit behind a pipeline that still calls Python, which hangs one time in two."""

from __future__ import annotations

import json

import pytest

from tests.probe import MakeProbe

ENDS_WITH_A_LIVE_PIPELINE = """
    import atexit, os, sys, time
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import tensorflow as tf

    def slow(x):
        time.sleep(0.001)
        return np.float32(x)

    def read(x):
        return tf.numpy_function(slow, [x], tf.float32)

    atexit.register(lambda: print("exit handler"))
    numbers = tf.data.Dataset.range(1000).map(read).repeat().prefetch(8)
    iterator = iter(numbers)
    print(float(next(iterator)))
    log = open("log.txt", "w")
    log.write("never closed")
    print("the end", end=" ")
    sys.exit(3)
"""


@pytest.mark.tensorflow
def test_the_script_ends_as_it_would_have(make_probe: MakeProbe) -> None:
    probe = make_probe(ENDS_WITH_A_LIVE_PIPELINE)

    seen = probe.under_pipediag("--run-to-end")

    assert (seen.stdout, seen.status) == ("0.0\nthe end exit handler\n", 3)
    assert "Traceback" not in seen.stderr
    assert (probe.directory / "log.txt").read_text() == "never closed"
    session = json.loads((probe.directory / "../out/session.json").read_text())
    assert (session["script"]["outcome"], session["script"]["status"]) == ("exited", 3)
