"""Waits for each epoch's first batch, in a `fit` and in a loop of the script's own."""

from __future__ import annotations

import pytest

from pipediag.measures.loops import time_of
from pipediag.session.recorded_loops import RecordedLoop
from tests.capture.captured import SHORT_WINDOWS, Captured
from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

EPOCHS = 6
FILL_NS = 64 * 4_000_000
SLEEP_NS = 100_000_000
"""A sleep is never shorter than asked for."""

SCRIPT = """
    import time
    import keras
    import numpy as np
    import tensorflow as tf

    def slowly(row):
        time.sleep(0.004)
        return row

    def costly(row):
        made = tf.numpy_function(slowly, [row], tf.float32)
        made.set_shape([3])
        return made, tf.reduce_sum(row)

    rows = np.random.default_rng(7).random((64, 3)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices(rows).map(costly).shuffle(64).batch(4)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(dataset, epochs=6, verbose=0)  # fit

    class Sleeps(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            time.sleep(0.1)

    again = tf.data.Dataset.from_tensor_slices((rows, rows.sum(-1))).batch(4)
    model.fit(again, epochs=6, steps_per_epoch=16, verbose=0, callbacks=[Sleeps()])  # given

    weight = tf.Variable(tf.ones((3, 1)))

    @tf.function
    def train(x):
        weight.assign_sub(0.01 * tf.reduce_mean(x) * tf.ones((3, 1)))

    for epoch in range(6):
        for x, y in dataset:  # own
            train(x)
"""


@pytest.fixture(scope="module")
def epochs(capturing: Capturing) -> Captured:
    return capturing(SCRIPT, run_to_end=True, **SHORT_WINDOWS)


def taken(epochs: Captured, loop: RecordedLoop) -> None:
    time = time_of(epochs.recording, loop)
    assert time is not None
    assert time.epoch_ends_seen == EPOCHS - 1
    assert time.first_batches_s >= (EPOCHS - 1) * FILL_NS / 2e9
    assert time.total_s >= time.first_batches_s


def test_a_call_of_keras_holds_the_wait_in_its_first_step(epochs: Captured) -> None:
    loop = epochs.loop("fit")
    assert len(loop.epoch_seams) == EPOCHS - 1
    assert all(seam.handed_ns is None for seam in loop.epoch_seams)
    assert all((seam.first_step_ns or 0) >= FILL_NS for seam in loop.epoch_seams)
    taken(epochs, loop)


def test_a_loop_that_asks_by_itself_waits_before_its_first_step(epochs: Captured) -> None:
    loop = epochs.loop("own")
    assert len(loop.epoch_seams) == EPOCHS - 1
    for seam in loop.epoch_seams:
        assert seam.handed_ns is not None
        # What is read ahead while the iterator is made is not waited for.
        assert seam.handed_ns - seam.start_ns >= FILL_NS
    taken(epochs, loop)


def test_a_callback_behind_the_next_epoch_s_iterator_is_no_making_of_it(epochs: Captured) -> None:
    loop = epochs.loop("given")
    assert len(loop.epoch_seams) == EPOCHS - 1
    for seam in loop.epoch_seams:
        assert seam.making_ns > 0
        assert seam.asked_ns - seam.start_ns - seam.making_ns >= SLEEP_NS


def test_every_step_but_the_first_lies_between_the_first_ones_end_and_the_last_hand_over(
    epochs: Captured,
) -> None:
    loop = epochs.loop("own")
    assert loop.steps == EPOCHS * 16
    assert loop.warm_steps == loop.steps - 2
