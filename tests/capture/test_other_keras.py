"""Keras on the JAX backend, and Keras 2, each of which needs a package of its own."""

from __future__ import annotations

import importlib.util

import pytest

from tests.capture.captured import Captured, natively
from tests.capture.conftest import Capturing

# Keras 2 is no matter of JAX, but of its environment: the first one must do without tf_keras.
pytestmark = pytest.mark.jax


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


SEVERAL_STEPS_A_CALL = """
    import os
    os.environ["KERAS_BACKEND"] = "jax"
    import time
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(2)
    x = np.random.default_rng(2).random((1600, 4)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4)

    class Slowly(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(0.01)

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=4)
    model.fit(dataset, epochs=2, verbose=0, callbacks=[Slowly()])  # fit
    print(b"".join(weight.tobytes() for weight in model.get_weights()).hex())
"""


@pytest.fixture(scope="module")
def several(capturing: Capturing) -> Captured:
    needs("jax")
    return capturing(SEVERAL_STEPS_A_CALL, run_to_end=True)


def test_several_batches_a_call_are_one_step(several: Captured) -> None:
    loop = several.loop("fit")

    assert (loop.batches_per_call, loop.batch_size, loop.planned_steps) == (4, 4, 800)
    # Keras looks at one batch to build the model, before its 200 calls of four.
    assert loop.steps == 804
    for block in several.baseline(loop).blocks:
        assert len(block.gaps_us) == 4 * len(block.durations_ns)


def test_results_are_those_of_a_native_run(several: Captured) -> None:
    native = natively(several.script)

    assert (several.stdout, several.status) == (native.stdout, 0)


KERAS_2 = """
    import time
    import numpy as np
    import tensorflow as tf

    tf.keras.utils.set_random_seed(3)
    x = np.random.default_rng(0).integers(0, 50, (640, 3))
    y = np.ones((640, 1), "float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)

    class Slowly(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):  # hook
            time.sleep(0.01)

    layers = tf.keras.layers
    table = layers.Embedding(50, 4, input_length=3, name="table")
    model = tf.keras.Sequential([table, layers.Flatten(), layers.Dense(1)])
    model.compile("adam", "mse")
    slowly = [Slowly()]
    model.fit(dataset, validation_data=dataset, epochs=2, verbose=0, callbacks=slowly)  # dataset
    model.evaluate(dataset, verbose=0)  # evaluate
    model.predict(dataset, verbose=0)  # predict
    model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=slowly)  # arrays
    print(b"".join(weight.tobytes() for weight in model.get_weights()).hex())
"""
LEGACY = {"TF_USE_LEGACY_KERAS": "1"}


@pytest.fixture(scope="module")
def fits(capturing: Capturing) -> Captured:
    needs("tf_keras")
    return capturing(KERAS_2, LEGACY, run_to_end=True)


def test_results_of_keras_2_are_those_of_a_native_run(fits: Captured) -> None:
    native = natively(fits.script, **LEGACY)

    assert (fits.stdout, fits.status) == (native.stdout, 0)
    assert fits.recording.notes == []


@pytest.mark.parametrize(
    ("mark", "adapter"), [("dataset", "DatasetAdapter"), ("arrays", "TensorLikeDataAdapter")]
)
def test_each_fit_is_a_training_loop(fits: Captured, mark: str, adapter: str) -> None:
    loop = next(loop for loop in fits.loops(mark) if loop.role == "training")

    assert (loop.keras.data_adapter, loop.keras.optimizer) == (adapter, "Adam")
    assert (loop.steps, loop.planned_steps, loop.batch_size, loop.boundaries) == (160, 160, 8, 2)
    assert fits.kinds(loop) == {"warmup", "baseline", "stacks", "profile"}
    for block in fits.baseline(loop).blocks:
        assert len(block.gaps_us) == len(block.durations_ns)


def test_the_first_trace_is_no_retrace(fits: Captured) -> None:
    loop = next(loop for loop in fits.loops("dataset") if loop.role == "training")

    assert (loop.trace_count, loop.retrace_steps) == (1, [])


def test_other_phases_are_not_training(fits: Captured) -> None:
    validation = next(loop for loop in fits.loops("dataset") if loop.role != "training")
    others = [validation, fits.loop("evaluate"), fits.loop("predict")]

    assert [loop.role for loop in others] == ["validation", "evaluate", "predict"]
    assert not any(loop.updates_variables for loop in others)


def test_callbacks_and_tables(fits: Captured) -> None:
    keras = next(loop for loop in fits.loops("dataset") if loop.role == "training").keras
    (slowly,) = keras.callbacks
    (table,) = fits.recording.variables

    assert (slowly.name, slowly.line) == ("Slowly", fits.line("hook"))
    assert (table.layer, table.rows, table.dim, table.dtype) == ("table", 50, 4, "float32")


def test_environment(fits: Captured) -> None:
    assert fits.recording.environment.legacy_keras
    assert {loop.keras.legacy for loop in fits.recording.loops if loop.keras} == {True}
    assert fits.recording.environment.keras is not None
