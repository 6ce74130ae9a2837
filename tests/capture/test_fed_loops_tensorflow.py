"""Loops that Python feeds, that call Keras within their steps, or that draw from two datasets."""

from __future__ import annotations

import pytest

from tests.capture.captured import Captured
from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

SCRIPT = """
    import numpy as np
    import tensorflow as tf
    import keras

    x, y = np.ones((64, 4), "float32"), np.ones((64, 1), "float32")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    for step in range(60):
        i = step % 16 * 4
        model.train_on_batch(x[i : i + 4], y[i : i + 4])  # on batch

    def gradients(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        return tape.gradient(loss, model.trainable_variables)

    optimizer = keras.optimizers.SGD()
    optimizer.build(model.trainable_variables)

    @tf.function
    def train(x, y):
        optimizer.apply(gradients(x, y))

    for step in range(60):
        train(tf.constant(x[:4]), tf.constant(y[:4]))  # function

    for step in range(60):
        optimizer.apply(gradients(x[:4], y[:4]))  # eager

    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4).repeat(4)
    for a, b in data:  # read
        train(a, b)  # from dataset
        train(a, b)  # again
    model.fit(data, verbose=0)  # fit
"""

GAN = """
    import numpy as np
    import keras

    x, y = np.ones((16, 4), "float32"), np.ones((16, 1), "float32")
    ids = np.arange(64).reshape(16, 4)
    sampler = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
    judge = keras.Sequential([
        keras.Input((4,), dtype="int64"),
        keras.layers.Embedding(100, 8, name="words"),  # layer
        keras.layers.Flatten(),
        keras.layers.Dense(1),
    ])
    judge.compile("adam", "mse")
    gan = keras.Sequential([keras.Input((4,)), sampler, keras.layers.Dense(1)])
    gan.compile("sgd", "mse")
    while True:
        sampler.predict(x, verbose=0)  # predict
        judge.train_on_batch(ids, y)  # discriminator
        gan.train_on_batch(x, y)  # generator
"""


@pytest.fixture(scope="module")
def fed(capturing: Capturing) -> Captured:
    return capturing(SCRIPT, run_to_end=True)


def test_the_function_that_computes_gradients_eagerly_is_found(fed: Captured) -> None:
    (step,) = fed.loop("eager").eager_steps
    assert (step.function, step.lacking) == ("gradients", None)
    assert fed.loop("function").eager_steps == []


def test_script_runs_to_its_end(fed: Captured) -> None:
    assert fed.status == 0, fed.stderr
    assert fed.recording.notes == []


@pytest.mark.parametrize(
    ("mark", "kind"),
    [("on batch", "tf_function"), ("function", "tf_function"), ("eager", "eager")],
)
def test_loops_that_python_feeds_are_trainings(fed: Captured, mark: str, kind: str) -> None:
    loop = fed.loop(mark)
    assert (loop.kind, loop.role, loop.from_python) == (kind, "training", True)
    assert 55 <= loop.steps <= 60
    assert loop.batch_size == (None if kind == "eager" else 4)


def test_steps_on_batches_of_a_dataset_are_its_loops(fed: Captured) -> None:
    read = fed.loop("read")
    assert (read.role, read.from_python, read.steps) == ("training", False, 64)
    assert fed.loops("from dataset") == fed.loops("again") == []
    assert fed.loop("fit").role == "training"


@pytest.fixture(scope="module")
def run(capturing: Capturing) -> Captured:
    return capturing(GAN)


def test_a_gan_that_predicts_in_each_step_is_measured_and_stopped(run: Captured) -> None:
    """It does not say how long it goes on; natively it would for ever."""
    assert run.recording.outcome == "stopped", run.stderr
    loop = run.loop("discriminator")
    assert {"warmup", "baseline", "stacks", "profile"} <= run.kinds(loop)
    assert {wait for block in run.baseline(loop).blocks for wait in block.waits_ns} == {0}
    assert loop.boundaries <= 2
    assert run.loops("generator") == []
    assert run.loop("predict").role == "predict"
    (call,) = loop.nested
    assert (call.what, call.line) == ("predict", run.line("predict"))
    assert 0 < call.elapsed_ns < loop.elapsed_ns
    (stacks,) = [one for one in run.recording.stacks if one.loop_id == loop.id]
    assert stacks.samples > 0


def test_tables_of_a_model_that_is_given_arrays(run: Captured) -> None:
    (table,) = run.recording.variables
    assert (table.layer, table.line) == ("words", run.line("layer"))
    assert table.ids is not None, table.ids_missing


SEVERAL = """
    import time
    import numpy as np
    import tensorflow as tf

    x = np.ones((240, 4), "float32")
    fast = tf.data.Dataset.from_tensor_slices(x).batch(8)
    asleep = lambda row: tf.py_function(lambda row: (time.sleep(0.01), row)[1], [row], tf.float32)
    slow = fast.map(asleep)  # asleep
    weights = tf.Variable(tf.zeros([4, 1]))

    @tf.function
    def train(one, other):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((one @ weights - 1) ** 2 + (other @ weights) ** 2)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))

    for epoch in range(3):
        for one, other in zip(fast, slow):  # zip
            train(one, other)
        for one in fast:  # validation
            tf.reduce_mean(one @ weights).numpy()

    others = iter(slow.repeat())  # others
    for epoch in range(3):
        for one in fast:  # next
            train(one, next(others))
"""


@pytest.fixture(scope="module")
def several(capturing: Capturing) -> Captured:
    return capturing(SEVERAL, run_to_end=True)


@pytest.mark.parametrize("mark", ["zip", "next"])
def test_the_loop_is_measured_with_both_waits(several: Captured, mark: str) -> None:
    assert several.status == 0, several.stderr
    loop = several.loop(mark)
    assert (loop.role, loop.steps, loop.iterators) == ("training", 90, 3)
    assert len(loop.epoch_boundaries) == 2
    assert {"warmup", "baseline", "stacks", "profile"} <= several.kinds(loop)
    for block in several.baseline(loop).blocks:
        assert block.gaps_us == []
        assert len(block.waits_ns) == len(block.durations_ns)
    assert loop.untried is not None
    assert loop.several_iterators


def test_what_is_drawn_from_beside_it_is_no_loop_that_evaluates(several: Captured) -> None:
    others = several.loop("others")
    assert (others.role, others.part_of) == ("other", several.loop("next").id)
    assert several.loop("validation").role == "validation"
    assert several.loop("validation").part_of is None
