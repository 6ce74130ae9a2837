"""A fit of few steps is held for trials at its last batch, unless its run goes on."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

SHORT = """
    import hashlib

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    x = np.random.rand(EXAMPLES, 16).astype("float32")
    y = x.sum(1)

    def augmented(row, label):
        for _ in range(20):
            row = tf.sin(row)
        return row + tf.random.uniform([16]) * 0.1, label

    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(50).map(augmented).batch(4)
    held_out = tf.data.Dataset.from_tensor_slices((x[:8], y[:8])).batch(4)
    dropout = keras.layers.Dropout(0.3)
    model = keras.Sequential([keras.layers.Dense(8), dropout, keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
    history = model.fit(dataset, epochs=EPOCHS, validation_data=held_out, verbose=0)
    weights = b"".join(np.ascontiguousarray(w).tobytes() for w in model.get_weights())
    print("FACT losses", history.history)
    print("FACT weights", hashlib.sha256(weights).hexdigest(), int(model.optimizer.iterations))
    print("FACT draws", np.random.rand(), float(tf.random.uniform([])))
    print("FACT again", history.model.evaluate(held_out, verbose=0))
    print("FACT next pass", float(next(iter(dataset))[0][0, 0]))
"""


@pytest.mark.parametrize("examples", ["80", "100", "120"])
def test_a_short_fit_is_tried_before_it_is_over(make_case: MakeCase, examples: str) -> None:
    case = make_case(SHORT.replace("EXAMPLES", examples).replace("EPOCHS", "1"))
    session = case.analysed("--budget", "8").session

    assert session.trials is not None, session.trials_missing
    assert session.trials.consumer == "training"


def test_one_that_runs_to_its_end_has_its_native_results(make_case: MakeCase) -> None:
    case = make_case(SHORT.replace("EXAMPLES", "40").replace("EPOCHS", "3"))
    native, analysed = case.natively(), case.analysed("--budget", "8", "--run-to-end")

    assert native.facts
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
    assert analysed.session.script.outcome == "finished"
    assert analysed.session.trials is None
