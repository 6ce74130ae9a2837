"""Two fits from one line, a short one first: the long one is what the run is about."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

REHEARSAL = """
    import time

    import keras
    import numpy as np
    import tensorflow as tf

    x = np.random.rand(600, 16).astype("float32")

    def train(sleep_s, epochs):
        def slow(row):
            time.sleep(sleep_s)
            return row

        def row(a, b):
            return tf.ensure_shape(tf.numpy_function(slow, [a], tf.float32), [16]), b

        dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(1))).map(row).batch(5)
        model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(dataset, epochs=epochs, verbose=0)

    train(0.001, 1)
    train(0.005, 400)
"""


def test_the_longer_of_two_fits_is_diagnosed_and_ends_the_look(make_case: MakeCase) -> None:
    analysed = make_case(REHEARSAL).analysed("--budget", "0")
    session = analysed.session
    assert [loop.planned_steps for loop in session.loops] == [120, 48_000], analysed.stderr
    short, long = session.loops
    assert (short.diagnosed, long.diagnosed) == (False, True)
    assert short.steps == 120
    complete = {(window.loop_id, window.kind) for window in session.windows if window.complete}
    assert (short.id, "repeat") not in complete
    assert {(long.id, "baseline"), (long.id, "repeat")} <= complete
    assert session.script.outcome == "stopped"
