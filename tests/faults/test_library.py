"""`pipediag.analyze` in the middle of a program: what follows is what follows without it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from .case import Case, Run

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

PROGRAM = """
    import hashlib
    import random

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(7)

    def noisy(x, y):
        return x + tf.random.uniform(x.shape, seed=3), y

    x = np.random.rand(1200, 16).astype("float32")
    dataset = (tf.data.Dataset.from_tensor_slices((x, x.sum(1)))
               .shuffle(300).map(noisy).batch(4).prefetch(2))
    layers = [keras.layers.Input((16,)), keras.layers.Dense(8), keras.layers.Dropout(0.3),
              keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile("adam", "mse", metrics=["mae"])
    ANALYSIS
    history = model.fit(dataset, epochs=2, verbose=0)
    weights = b"".join(w.tobytes() for w in model.get_weights())
    print("FACT losses", history.history)
    print("FACT weights", hashlib.sha256(weights).hexdigest())
    print("FACT optimizer", [float(np.sum(v)) for v in model.optimizer.variables])
    print("FACT draws", random.random(), np.random.rand(), keras.random.uniform(()).numpy())
"""
ANALYSIS = """import pipediag
    result = pipediag.analyze(dataset, model, epochs=9, budget=4)
    assert result.session.steps is not None, result
    assert result.session.script.outcome == "stopped", result"""


def natively(folder: Path, program: str) -> Run:
    folder.mkdir()
    return Case(folder, {"main.py": dedent(program)}).natively()


def test_training_goes_on_as_if_nothing_had_been_analysed(tmp_path: Path) -> None:
    native = natively(tmp_path / "without", PROGRAM.replace("ANALYSIS", "pass"))
    analysed = natively(tmp_path / "with", PROGRAM.replace("ANALYSIS", ANALYSIS))
    assert len(native.facts) == 4, native.stderr
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
