"""Drawn classes tried in a running `fit`: they train, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.session.edits import SetModel
from pipediag.session.messages import TrialsAwaited
from tests.runner.test_child_executor_tensorflow import Voice, refusal_of, tried

pytestmark = pytest.mark.tensorflow

FIT = """
    import hashlib
    import random

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(12)
    words = np.random.default_rng(2).integers(0, 200, (480, 6)).astype("int32")
    dataset = tf.data.Dataset.from_tensor_slices((words, words[:, 0]))
    dataset = dataset.shuffle(480, seed=5).batch(16, drop_remainder=True)
    model = keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            keras.layers.Embedding(200, 4),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(200, activation="softmax"),
        ]
    )
    model.compile("adam", LOSS, metrics=["accuracy"])
    history = model.fit(dataset, epochs=EPOCHS, verbose=0).history
    kept = (*model.variables, *model.optimizer.variables)
    values = b"".join(one.numpy().tobytes() for one in kept)
    print("kept", len(kept), hashlib.sha256(values).hexdigest(), history)
    print("draws", np.random.rand(), random.random(), float(tf.random.uniform([])))
    print("next", keras.layers.Dense(3).name, keras.optimizers.Adam().name)
"""
PLAIN = '"sparse_categorical_crossentropy"'
DRAWN = SetModel({"sampled_softmax": 20})


def test_a_loss_that_it_can_not_stand_for_is_not_tried(tmp_path: Path) -> None:
    refused: list[str] = []

    def talk(_: TrialsAwaited, voice: Voice) -> None:
        voice.prepare("base")
        refused.append(refusal_of(voice.prepare("drawn", DRAWN)))

    own = "lambda y, p: keras.losses.sparse_categorical_crossentropy(y, p)"
    result = tried(tmp_path, FIT.replace("EPOCHS", "2000").replace("LOSS", own), talk)

    assert result.outcome == "stopped", result.detail
    assert refused == ["The loss is `<lambda>`, and no categorical cross-entropy."]
