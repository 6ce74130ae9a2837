"""Calls of a model that are timed eagerly and as a `tf.function`, in a running script."""

from __future__ import annotations

import pytest

from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

SCRIPT = """
    import json
    from unittest.mock import Mock
    import keras
    import tensorflow as tf
    from pipediag.capture.frameworks.keras.paired_calls import PairedCalls
    from pipediag.capture.guard import Guard
    from pipediag.session.recorded_loops import RecordedLoop

    predictions, loop, between = [], Mock(role="other", id="loop_1"), []
    calls = PairedCalls(predictions, Mock(), lambda: loop, lambda: bool(between))
    calls.install(keras.Model, Guard(print))

    class Keeps(keras.Model):
        def __init__(self):
            super().__init__()
            self.seen = []
        def call(self, x, training=False):
            self.seen.append(1)
            return x + 1.0

    class Adds(keras.layers.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_mean(x))
            return x

    inputs = keras.Input((3,))
    adding = keras.Sequential([Adds(), keras.layers.Dense(2)])
    model = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    keeps, x = Keeps(), tf.ones([4, 3])
    for length in range(2, 22):
        model(tf.ones([length, 3]), training=False)
    for _ in range(20):
        keeps(x)
    for _ in range(20):
        adding(x)
        total = float(sum(adding.losses))
    for _ in range(20):
        model(x, training=True)
    for _ in range(20):
        with tf.GradientTape():
            model(x)
    loop.role = "training"
    for _ in range(20):
        model(x)
    between.append(True)
    for _ in range(20):
        model(x)
    results = [[one.model, one.calls, len(one.other_ms), one.lacking] for one in predictions]
    print("RESULTS", json.dumps(results))
"""


def test_calls_of_a_model_are_timed_unless_they_train_or_would_lose_something(
    capturing: Capturing,
) -> None:
    evaluated, keeps, adds, trains, between_epochs = capturing(SCRIPT).results
    assert evaluated == between_epochs == ["model", 20, 8, None]
    assert (keeps[0], keeps[2]) == ("keeps", 0)
    assert "`self.seen`" in keeps[3]
    assert (adds[0], adds[2]) == ("adding", 0)
    assert "losses" in adds[3]
    assert (trains[0], trains[2]) == ("model", 0)
    assert "training" in trains[3]
