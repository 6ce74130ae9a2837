"""Keras on the JAX backend, fed by tf.data."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.capture.captured import CHECKOUT, Captured, natively
from tests.capture.conftest import Capturing

pytestmark = [
    pytest.mark.jax,
    pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed"),
]

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
def sample(capturing: Capturing) -> Captured:
    script = (CHECKOUT / "sample_pipelines/jax_fit.py").read_text(encoding="utf-8")
    # Ten times as long, so that the training cannot end before its windows on a busy machine.
    assert "epochs=20" in script
    return capturing(script.replace("epochs=20", "epochs=200"), look_ahead_s=0.0)


def test_the_loop_is_training(sample: Captured) -> None:
    loop = sample.loop("pipediag: loop")

    assert (loop.kind, loop.role, loop.batch_size, loop.planned_steps) == (
        "keras",
        "training",
        32,
        10_000,
    )
    assert loop.keras is not None
    assert (loop.keras.optimizer, loop.keras.data_adapter) == ("SGD", "TFDatasetAdapter")
    assert sample.recording.outcome == "stopped"
    assert sample.status == 0


def test_steps_waits_and_gaps_are_recorded(sample: Captured) -> None:
    loop = sample.loop("pipediag: loop")
    blocks = sample.baseline(loop).blocks

    assert sample.kinds(loop) == {"warmup", "baseline", "stacks", "profile", "repeat"}
    assert sum(len(block.durations_ns) for block in blocks) == 20
    for block in blocks:
        assert len(block.durations_ns) == len(block.waits_ns) == len(block.gaps_us)


def test_the_pipeline_is_recorded(sample: Captured) -> None:
    culprit = sample.operation("pipediag: culprit")

    assert culprit.function is not None
    assert culprit.function.stateful
    assert sample.recording.environment.keras_backend == "jax"
    assert sample.recording.environment.jax is not None


def test_the_profile_holds_tf_datas_events(sample: Captured) -> None:
    profile = sample.windows(sample.loop("pipediag: loop"))[-2]
    assert profile.trace_directory is not None
    content = b"".join(path.read_bytes() for path in Path(profile.trace_directory).rglob("*.pb"))

    assert b"Iterator::" in content
    assert sample.operation("pipediag: culprit").name.encode() in content
    assert b"pipediag_step" in content


@pytest.fixture(scope="module")
def several(capturing: Capturing) -> Captured:
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
