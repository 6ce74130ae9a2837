"""Code of a model that is to be pasted, run as it stands there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipediag.patching.snippets import sampled_softmax, sgd_for_tables
from pipediag.session.recorded_loops import Softmax
from pipediag.vocabulary import Scalar, SparseOrDense
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


@pytest.mark.parametrize(
    ("labels", "given"),
    [
        ("sparse", IDS[:, 0]),
        ("dense", np.eye(CLASSES, dtype="float32")[IDS[:, 0]]),
        ("sparse", IDS),
    ],
)
def test_a_model_with_drawn_classes_learns(labels: SparseOrDense, given: Any) -> None:
    names = with_keras()
    names["vectors"] = words(names["keras"], pooled=given.shape != IDS.shape)
    softmax = Softmax(weights="words", classes=CLASSES, features=8, labels=labels)
    code = "\n".join(sampled_softmax(softmax, DRAWN)).replace("optimizer=...", "'adam'")
    exec(code, names)
    model = names["model"]
    before = model.evaluate(IDS, given, verbose=0)
    # Few epochs of many steps: an epoch costs Keras more than they do.
    rows = (np.concatenate([one] * 12) for one in (IDS, given))
    model.fit(*rows, batch_size=16, epochs=5, verbose=0)

    assert before == pytest.approx(np.log(CLASSES), abs=0.2)
    assert model.evaluate(IDS, given, verbose=0) < before - 0.2
    logits = model.predict(IDS, verbose=0)
    assert logits.shape == (*(IDS.shape if given is IDS else IDS.shape[:1]), CLASSES)


def test_a_model_with_drawn_classes_keeps_losses_of_its_layers() -> None:
    names = with_keras()
    keras = names["keras"]
    inputs = keras.Input((4,), dtype="int32")
    vectors = keras.layers.Embedding(CLASSES, 8)(inputs)
    shrunk = keras.layers.ActivityRegularization(l2=3.0)(vectors)
    names["vectors"] = keras.Model(inputs, shrunk)
    softmax = Softmax(weights="words", classes=CLASSES, features=8, labels="sparse")
    exec("\n".join(sampled_softmax(softmax, DRAWN)).replace("optimizer=...", "'sgd'"), names)
    model = names["model"]

    logits = model(IDS, training=False)
    (added,) = model.losses
    without = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(IDS, logits)
    loss = model.compute_loss(IDS, IDS, logits, training=False)
    assert float(added) > 0.01
    assert float(loss) == pytest.approx(float(without) + float(added), rel=1e-5)


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
