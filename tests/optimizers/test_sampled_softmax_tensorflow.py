"""The examples of docs/embeddings.md, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tests

pytestmark = pytest.mark.tensorflow
PAGE = Path(tests.__file__).parent.parent / "docs" / "embeddings.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def model() -> Any:
    names: dict[str, Any] = {}
    for example in EXAMPLES:
        exec(example, names)
    return names["model"]


def test_it_learns_with_drawn_classes_and_is_evaluated_with_all(model: Any) -> None:
    import tensorflow as tf

    ids = np.random.default_rng(3).integers(0, 3_000, (512, 4)).astype("int32")
    ids[:, 1:] = ids[:, :1]
    labels = ids[:, 0]
    before = model.evaluate(ids, labels, verbose=0)
    model.fit(ids, labels, batch_size=64, epochs=40, verbose=0)
    after = model.evaluate(ids, labels, verbose=0)

    assert before == pytest.approx(np.log(3_000), abs=0.1)
    assert after < before - 1
    logits = model.predict(ids, verbose=0)
    assert logits.shape == (512, 3_000)
    all_classes = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    assert after == pytest.approx(float(tf.reduce_mean(all_classes)), rel=1e-4)


def test_with_all_classes_drawn_the_loss_is_that_of_the_full_softmax(model: Any) -> None:
    """Each class is drawn once, and the right one is left out among them: then nothing is missing
    but the correction for how often a class is drawn, which is the same for all."""
    import tensorflow as tf

    rng = np.random.default_rng(4)
    vectors = tf.constant(rng.normal(size=(6, 16)), "float32")
    labels = tf.constant(rng.integers(0, 3_000, 6), "int64")
    drawn = tf.random.all_candidate_sampler(labels[:, None], 1, 3_000, unique=True, seed=1)
    sampled = tf.nn.sampled_softmax_loss(
        model.rows.value,
        model.biases.value,
        labels[:, None],
        vectors,
        3_000,
        3_000,
        sampled_values=drawn,
    )
    full = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model.logits(vectors))

    np.testing.assert_allclose(sampled, full, rtol=1e-4)


def test_its_gradient_comes_as_rows(model: Any) -> None:
    import tensorflow as tf

    ids, labels = np.ones((8, 4), "int32"), np.ones(8, "int32")
    with tf.GradientTape() as tape:
        loss = model.compute_loss(ids, labels, model(ids, training=True), training=True)
    rows, _ = tape.gradient(loss, [model.rows.value, model.biases.value])

    assert isinstance(rows, tf.IndexedSlices)
    assert rows.values.shape[0] < 3_000
