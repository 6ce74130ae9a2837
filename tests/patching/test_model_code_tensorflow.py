"""Code of an optimizer that is to be pasted, run as it stands there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipediag.patching.model_code import sgd_for_tables

pytestmark = pytest.mark.tensorflow

CLASSES = 200
IDS = np.random.default_rng(5).integers(0, CLASSES, (64, 4)).astype("int32")


def with_keras() -> dict[str, Any]:
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(4)
    return {"keras": keras, "tf": tf}


def words(keras: Any) -> Any:
    inputs = keras.Input((4,), dtype="int32")
    vectors = keras.layers.Embedding(CLASSES, 8)(inputs)
    pool = keras.layers.GlobalAveragePooling1D()
    return keras.Model(inputs, pool(vectors))


def test_rows_of_an_embedding_take_plain_steps_and_all_else_those_of_its_optimizer() -> None:
    names = with_keras()
    keras = names["keras"]
    code = "\n".join(sgd_for_tables("Adam")).replace("(...), ...)", "(0.01), loss='mse')")
    body = words(keras)
    names["model"] = keras.Sequential([body, keras.layers.Dense(1)])
    exec(code, names)
    model, tf = names["model"], names["tf"]
    table, kernel = model.layers[0].layers[1].embeddings, model.layers[1].kernel
    before = table.numpy(), kernel.numpy()
    target = np.ones((64, 1), "float32")
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(IDS) - target) ** 2)
    gradient = tf.convert_to_tensor(tape.gradient(loss, table.value))
    model.fit(IDS, target, batch_size=64, epochs=1, verbose=0)

    np.testing.assert_allclose(table.numpy(), before[0] - 0.1 * gradient, atol=1e-6)
    # A first step of Adam is as long as its learning rate.
    np.testing.assert_allclose(np.abs(kernel.numpy() - before[1]), 0.01, rtol=0.02)
