"""What a stopped script saves: the training that it has done, and nothing of pipediag's steps."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

NUMBERS = """
    import time

    import numpy as np
    import tensorflow as tf

    def waits(i):
        time.sleep(0.002)
        return np.float32(i)

    dataset = tf.data.Dataset.range(100_000)
    dataset = dataset.map(
        lambda i: tf.ensure_shape(tf.numpy_function(waits, [i], tf.float32), [])
    ).batch(4)
"""

# The "weights" add up what they were fed: after n examples they are the sum of 0 to n - 1.
FIT = """
    import keras

    class Sums(keras.Model):
        def __init__(self):
            super().__init__()
            self.total = self.add_weight(shape=(), initializer="zeros", name="total")
            self.count = self.add_weight(shape=(), initializer="zeros", name="count")
        def call(self, x):
            return x
        def train_step(self, data):
            x, _ = data
            self.total.assign_add(tf.reduce_sum(x))
            self.count.assign_add(tf.cast(tf.shape(x)[0], tf.float32))
            return {"loss": self.total}

    class Last(keras.callbacks.Callback):
        step = 0
        def on_train_batch_end(self, batch, logs=None):
            Last.step = batch + 1

    def told(model):
        count = float(model.count)
        return float(model.total) == count * (count - 1) / 2, count

    dataset = dataset.map(lambda numbers: (numbers, 0.0))
    model = Sums()
    model.compile("sgd")
    model(np.zeros((1,), "float32"))
    saving = keras.callbacks.BackupAndRestore("backup", save_freq=20, delete_checkpoint=False)
    try:
        model.fit(dataset, verbose=0, callbacks=[Last(), saving])
    finally:
        print("FACT straight", *told(model), Last.step)
        model.load_weights("backup/latest.weights.h5")
        print("FACT backup straight", *told(model))
"""


@pytest.mark.parametrize("budget", ["0", "6"])
def test_weights_of_a_stopped_fit_are_those_of_its_own_steps(
    make_case: MakeCase, budget: str
) -> None:
    analysed = make_case(NUMBERS + FIT).analysed("--budget", budget)
    kept, backup = analysed.facts
    _, _, straight, count, step = kept.split()
    assert straight == "True", kept
    assert float(count) >= 4 * 30
    # The callback was called for the step on which pipediag's own went on.
    assert 0 <= int(step) - float(count) / 4 <= 1
    assert backup.split()[3] == "True", backup
    assert analysed.status == 0
    assert analysed.session.script.outcome == "stopped"


LOOP = """
    total, count = tf.Variable(0.0), tf.Variable(0.0)
    checkpoint = tf.train.Checkpoint(total=total, count=count)

    @tf.function
    def train(x):
        total.assign_add(tf.reduce_sum(x))
        count.assign_add(tf.cast(tf.shape(x)[0], tf.float32))

    def straight():
        return float(total) == float(count) * (float(count) - 1) / 2, float(count)

    saved = []
    try:
        for step, batch in enumerate(dataset):
            train(batch)
            if step % 20 == 19:
                saved.append(checkpoint.write(f"saved/{step}"))
    finally:
        print("FACT straight", *straight())
        for path in saved:
            checkpoint.read(path)
            print("FACT saved straight", *straight())
"""


def test_what_a_loop_of_the_scripts_own_saves_is_its_own_training(make_case: MakeCase) -> None:
    analysed = make_case(NUMBERS + LOOP).analysed("--budget", "5")
    assert len(analysed.facts) > 3
    assert all(fact.split()[-2] == "True" for fact in analysed.facts), analysed.facts


SAVES_SLOWLY = """
    total = tf.Variable(0.0)
    try:
        for batch in dataset:
            total.assign_add(tf.reduce_sum(batch))
    finally:
        with open("saved.bin", "wb") as file:
            for _ in range(13):
                file.write(b"x" * 1000)
                file.flush()
                time.sleep(1)
            file.write(b"END")
        print("FACT saved")
"""


def test_a_script_that_is_saving_is_given_the_time_for_it(make_case: MakeCase) -> None:
    analysed = make_case(NUMBERS + SAVES_SLOWLY).analysed("--budget", "0")
    assert analysed.facts == ["FACT saved"]
    assert (analysed.directory / "saved.bin").read_bytes().endswith(b"END")
