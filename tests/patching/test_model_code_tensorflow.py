"""Code of a model that is to be pasted, run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipediag.patching.snippets import sgd_for_tables
from pipediag.vocabulary import Scalar
from tests.factories import make_keras

pytestmark = pytest.mark.tensorflow

CLASSES, DRAWN = 200, 30
IDS = np.random.default_rng(5).integers(0, CLASSES, (64, 4)).astype("int32")


def with_keras() -> dict[str, Any]:
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(4)
    return {"keras": keras, "tf": tf}


def words(keras: Any, *, pooled: bool) -> Any:
    inputs = keras.Input((4,), dtype="int32")
    vectors = keras.layers.Embedding(CLASSES, 8)(inputs)
    pool = keras.layers.GlobalAveragePooling1D()
    return keras.Model(inputs, pool(vectors) if pooled else vectors)


def test_a_model_with_drawn_classes_learns() -> None:
    page = (Path(__file__).parents[2] / "docs" / "embeddings.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (code,) = [one for one in blocks if "class SampledSoftmax" in one]
    names: dict[str, Any] = {}
    exec(code, names)
    keras = names["keras"]
    keras.utils.set_random_seed(4)
    model = names["SampledSoftmax"](words(keras, pooled=True), CLASSES, DRAWN)
    model.compile(optimizer="adam")
    given = IDS[:, 0]
    before = model.evaluate(IDS, given, verbose=0)
    model.fit(IDS, given, batch_size=16, epochs=60, verbose=0)

    assert model.evaluate(IDS, given, verbose=0) < before - 0.2
    assert model.predict(IDS, verbose=0).shape == (len(IDS), CLASSES)


def sgd_code(optimizer: str, arguments: str, settings: dict[str, Scalar]) -> str:
    keras = make_keras(optimizer=optimizer, optimizer_settings=settings)
    code = "\n".join(sgd_for_tables(keras))
    return code.replace("SgdForTables(...)", f"SgdForTables({arguments})").replace(
        "optimizer, ...", "optimizer, loss='mse'"
    )


def test_rows_that_a_batch_does_not_hold_do_not_decay() -> None:
    names = with_keras()
    keras = names["keras"]
    body = words(keras, pooled=True)
    names["model"] = keras.Sequential([body, keras.layers.Dense(1)])
    exec(sgd_code("AdamW", "0.01, weight_decay=0.5", {"weight_decay": 0.5}), names)
    table = body.layers[1].embeddings
    before = table.numpy()
    names["model"].fit(IDS[:2] * 0 + 7, np.ones((2, 1), "float32"), epochs=1, verbose=0)

    changed = np.flatnonzero((table.numpy() != before).any(axis=1))
    assert changed.tolist() == [7]


def test_rows_of_an_embedding_take_plain_steps_and_all_else_those_of_its_optimizer() -> None:
    names = with_keras()
    keras = names["keras"]
    code = sgd_code("Adam", "0.01", {})
    body = words(keras, pooled=True)
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
