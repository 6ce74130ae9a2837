"""Keras' `predict` in each step of a loop over a dataset, and `evaluate` after each epoch."""

from __future__ import annotations

import pytest

from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

GAN = """
    import numpy as np
    import tensorflow as tf
    import keras

    x, y = np.ones((120, 4), "float32"), np.ones((120, 1), "float32")
    sampler = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
    judge = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    judge.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
    for epoch in range(100):
        for real, label in data:  # loop
            made = sampler.predict(real, verbose=0)  # predict
            judge.train_on_batch(real, label)  # discriminator
            judge.train_on_batch(made, label)
        judge.evaluate(x, y, verbose=0)  # evaluate
"""


def test_a_gan_that_reads_a_dataset_and_predicts_is_measured(capturing: Capturing) -> None:
    run = capturing(GAN)
    assert run.recording.outcome == "stopped", run.stderr
    loop = run.loop("loop")
    assert (loop.role, loop.from_python) == ("training", False)
    assert {"warmup", "baseline", "stacks", "profile"} <= run.kinds(loop)
    assert run.loops("discriminator") == []
    assert run.loop("predict").role == "predict"
    assert run.loop("evaluate").role == "evaluate"
    (call,) = loop.nested
    assert (call.what, call.line) == ("predict", run.line("predict"))
    assert loop.epoch_seams, "an epoch's evaluation comes between its steps and the next one's"
    assert loop.seams <= 2 + len(loop.epoch_seams)
    assert run.loop("evaluate").steps == 4 * len(loop.epoch_seams)
