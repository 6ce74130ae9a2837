"""Edits of embedding tables in a running `fit`: each trains, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.session.edits import SetModel
from pipediag.session.messages import Answer, Prepared, TrialsAwaited
from pipediag.vocabulary import Scalar
from tests.runner.test_child_executor_tensorflow import Voice, block_of, tried

pytestmark = pytest.mark.tensorflow

FIT = """
    import hashlib

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(12)
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    rng = np.random.default_rng(2)
    words = np.minimum(rng.zipf(1.5, (480, 6)) - 1, 99)
    dataset = tf.data.Dataset.from_tensor_slices((words, words[:, :1] / 100))
    dataset = dataset.batch(16, drop_remainder=True)
    model = keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            keras.layers.Embedding(100, 4, mask_zero=True, embeddings_regularizer="l2"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse")
    model.fit(dataset, epochs=EPOCHS, verbose=0)
    weights = b"".join(w.tobytes() for w in model.get_weights())
    print("weights", hashlib.sha256(weights).hexdigest())
"""

EDITS: dict[str, dict[str, Scalar]] = {
    "rows alone": {"optimizer": "row_wise"},
}


def test_each_edit_of_a_table_trains_in_the_running_loop(tmp_path: Path) -> None:
    answers: dict[str, Answer] = {}
    blocks: dict[str, Answer] = {}

    def talk(_: TrialsAwaited, voice: Voice) -> None:
        voice.prepare("base")
        for name, settings in EDITS.items():
            answers[name] = voice.prepare(name, SetModel(settings))
            blocks[name] = voice.block(name)
            voice.block("base")

    result = tried(tmp_path, FIT.replace("EPOCHS", "2000"), talk)

    assert result.outcome == "stopped", result.detail
    assert answers == {name: Prepared(name) for name in EDITS}
    assert all(block_of(block).batches >= 5 for block in blocks.values())
