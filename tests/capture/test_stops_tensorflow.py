"""How pipediag ends a script, and what scripts do to it."""

from __future__ import annotations

import pytest

from tests.capture.captured import Captured
from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

SWALLOWS = """
    import atexit
    import tensorflow as tf

    atexit.register(print, "exit handler ran")
    weights = tf.Variable(tf.zeros([4, 1]))

    @tf.function
    def train(x):
        weights.assign_add(tf.reduce_sum(x) * tf.ones([4, 1]))

    for epoch in range(1000000):
        for x in tf.data.Dataset.range(50).map(lambda x: tf.cast(x, tf.float32)).batch(5):  # loop
            try:
                train(x)
            except:
                pass
        try:
            dataset = tf.data.Dataset.range(1000).batch(10)
            for x in dataset:  # guarded
                try:
                    train(tf.cast(x, tf.float32))
                except:
                    print("never reached", flush=True)
        except:
            print("swallowed", flush=True)
"""

FAULTS = """
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(3)
    weights = tf.Variable(tf.zeros([1]))

    @tf.function
    def train(x):
        weights.assign_add([tf.cast(tf.reduce_sum(x), tf.float32)])

    @tf.function
    def train_from(iterator):
        train(next(iterator))

    def break_at_seven(x):
        if x == 7:
            raise ValueError("row 7 is broken")
        return x

    source = tf.data.Dataset.range(10)
    broken = source.map(lambda x: tf.numpy_function(break_at_seven, [x], tf.int64)).batch(1)
    try:
        for x in broken:  # broken
            train(x)
    except tf.errors.OpError as error:
        print(type(error).__name__, "row 7 is broken" in str(error))

    for x in source.take(0):  # empty
        train(x)

    iterator = iter(source.batch(5))  # past the end
    for _ in range(2):
        train(next(iterator))
    for _ in range(2):
        try:
            next(iterator)
        except StopIteration:
            print("stop")

    iterator = iter(source.batch(5))  # optional
    print([int(iterator.get_next_as_optional().has_value()) for _ in range(3)])

    iterator = iter(source.batch(5))  # inside a function
    for _ in range(3):
        try:
            train_from(iterator)
        except tf.errors.OutOfRangeError as error:
            print(type(error).__name__)

    for x in source.batch(10):  # one step
        train(x)

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    rows = tf.data.Dataset.from_tensor_slices((np.ones((8, 1)), np.ones((8, 1))))
    model.fit(rows.batch(8), epochs=1, verbose=0)  # one-step fit
    try:
        model.fit(rows.take(0).batch(8), epochs=1, verbose=0)  # empty fit
    except Exception as error:
        print(type(error).__name__)
    print(float(weights[0]))
"""
# What it prints natively.
TOLD = ["InvalidArgumentError True", "stop", "stop", "[1, 1, 0]", "OutOfRangeError", "156.0"]


@pytest.fixture(scope="module")
def swallowing(capturing: Capturing) -> Captured:
    return capturing(SWALLOWS)


def test_a_script_that_swallows_the_stop_still_ends(swallowing: Captured) -> None:
    assert swallowing.status == 0
    assert swallowing.recording.outcome == "stopped"


def test_its_exit_handlers_run_and_its_output_is_kept(swallowing: Captured) -> None:
    assert swallowing.stdout.endswith("exit handler ran\n")
    assert "never reached" not in swallowing.stdout


def test_a_stopped_script_was_measured_on_a_repeated_batch_too(swallowing: Captured) -> None:
    measured = {w.kind for w in swallowing.recording.windows if w.complete}

    assert measured >= {"warmup", "baseline", "stacks", "profile", "repeat"}


@pytest.fixture(scope="module")
def faults(capturing: Capturing) -> Captured:
    return capturing(FAULTS)


def test_faults_reach_the_script_as_without_pipediag(faults: Captured) -> None:
    assert (faults.stdout.splitlines(), faults.status) == (TOLD, 0)
    assert faults.recording.outcome == "finished"


def test_batches_before_a_fault_are_counted(faults: Captured) -> None:
    assert faults.loop("broken").steps == 7
    assert faults.loop("broken").updates_variables
    assert faults.loop("past the end").steps == 2
    assert faults.loop("one step").steps == 1


def test_a_loop_without_batches_has_no_steps(faults: Captured) -> None:
    assert faults.loop("empty").steps == 0
    assert faults.loop("empty").role == "preview"


def test_trainings_too_short_to_measure_are_still_listed(faults: Captured) -> None:
    fit = faults.loop("one-step fit")

    assert (fit.role, fit.steps) == ("training", 1)
    assert faults.loop("one step").role == "training"
    assert "baseline" not in faults.kinds(fit)
