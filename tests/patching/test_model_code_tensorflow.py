"""Code of docs/embeddings.md, run as it stands there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow

CLASSES, DRAWN = 200, 30
IDS = np.random.default_rng(5).integers(0, CLASSES, (64, 4)).astype("int32")


def with_drawn_classes(*, pooled: bool) -> Any:
    """Return the model of the section on large vocabularies, whose layers add a loss."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(4)
    inputs = keras.Input((4,), dtype="int32")
    vectors = keras.layers.Embedding(CLASSES, 8)(inputs)
    vectors = keras.layers.ActivityRegularization(l2=1e-4)(vectors)
    pool = keras.layers.GlobalAveragePooling1D()
    names = {"keras": keras, "tf": tf}
    names["vectors"] = keras.Model(inputs, pool(vectors) if pooled else vectors)
    text = Path("docs/embeddings.md").read_text(encoding="utf-8")
    [code] = [one for one in text.split("```python\n") if one.startswith("class SampledSoftmax")]
    code = code.partition("```")[0]
    exec(code.replace("200_000, 512", f"{CLASSES}, {DRAWN}").replace("=...", "='adam'"), names)
    return names["model"]


@pytest.mark.parametrize("labels", [IDS[:, 0], IDS])
def test_a_model_with_drawn_classes_learns(labels: Any) -> None:
    model = with_drawn_classes(pooled=labels is not IDS)
    before = model.evaluate(IDS, labels, verbose=0)
    # Few epochs of many steps: an epoch costs Keras more than they do.
    rows = (np.concatenate([one] * 12) for one in (IDS, labels))
    model.fit(*rows, batch_size=16, epochs=5, verbose=0)

    assert before == pytest.approx(np.log(CLASSES), abs=0.2)
    assert model.evaluate(IDS, labels, verbose=0) < before - 0.2
    shape = (*(IDS.shape if labels is IDS else IDS.shape[:1]), CLASSES)
    assert model.predict(IDS, verbose=0).shape == shape
