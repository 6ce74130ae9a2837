"""A training inside `pipediag.watch`: it ends as it does without."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from .case import Case, Run

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

PROGRAM = """
    import hashlib
    import random
    from contextlib import nullcontext

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(7)

    def noisy(x, y):
        return x + tf.random.uniform(x.shape, seed=3), y

    x = np.random.rand(1200, 16).astype("float32")
    dataset = (tf.data.Dataset.from_tensor_slices((x, x.sum(1)))
               .shuffle(300).map(noisy).batch(4).cache("cached").prefetch(2))
    # The cache is whole once its end was asked for, which `fit` does not do: whether the
    # prefetch does is a matter of time.
    for _ in dataset:
        pass
    layers = [keras.layers.Input((16,)), keras.layers.Dense(8), keras.layers.Dropout(0.3),
              keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile("adam", "mse", metrics=["mae"])

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(batch[0], training=True)[:, 0] - batch[1]) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    batches = iter(dataset.repeat())
    WATCHING
    with watching:
        history = model.fit(dataset, epochs=2, verbose=0)
        losses = [float(step(next(batches))) for _ in range(400)]
    after = model.fit(dataset, epochs=1, verbose=0, callbacks=callbacks)
    CHECK
    weights = b"".join(w.tobytes() for w in model.get_weights())
    print("FACT losses", history.history, after.history, losses[-3:])
    print("FACT weights", hashlib.sha256(weights).hexdigest())
    print("FACT optimizer", [float(np.sum(v)) for v in model.optimizer.variables])
    print("FACT draws", random.random(), np.random.rand(), keras.random.uniform(()).numpy())
"""
WITHOUT = {"WATCHING": "watching, callbacks = nullcontext(), []", "CHECK": "pass"}
WITH = {
    "WATCHING": """import pipediag
    watching, callbacks = pipediag.watch(), [pipediag.callback()]""",
    "CHECK": """assert watching.result.session.steps is not None, watching.result
    assert callbacks[0].result is not None, callbacks[0].result_missing""",
}


def natively(folder: Path, words: dict[str, str]) -> Run:
    folder.mkdir()
    program = PROGRAM
    for word, text in words.items():
        program = program.replace(word, text)
    return Case(folder, {"main.py": dedent(program)}).natively()


def test_training_ends_as_if_nothing_had_been_watched(tmp_path: Path) -> None:
    native = natively(tmp_path / "without", WITHOUT)
    assert len(native.facts) == 4, native.stderr
    watched = natively(tmp_path / "with", WITH)
    assert (watched.status, watched.facts) == (native.status, native.facts), watched.stderr
