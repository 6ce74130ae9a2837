"""A plain `fit` under `--run-to-end` without trials: the ground that all other cases stand on."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

FIT = """
    import hashlib

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    x = np.random.rand(1200, 16).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(1))).shuffle(300).batch(4)
    model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dropout(0.3),
                              keras.layers.Dense(1)])
    model.compile("adam", "mse")
    history = model.fit(dataset, epochs=3, verbose=0)
    weights = b"".join(w.tobytes() for w in model.get_weights())
    print("FACT losses", history.history["loss"])
    print("FACT weights", hashlib.sha256(weights).hexdigest())
    open("kept.txt", "w").write("done")
"""


def test_a_fit_that_runs_to_its_end_is_the_native_one(make_case: MakeCase) -> None:
    case = make_case(FIT)
    native = case.natively()
    analysed = case.analysed("--run-to-end", "--budget", "0")
    assert native.facts
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
