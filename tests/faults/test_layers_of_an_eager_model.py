"""An eager model takes each batch by itself: no trial that takes it apart may end its training."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

PETS = """
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(3)
    KINDS = ["cat", "dog", "fish"]
    names = [f"feature{number}" for number in range(6)]
    rows = {name: np.random.choice(KINDS, size=(640, 1)) for name in names}
    labels = np.random.randint(0, 2, size=(640, 1)).astype("float32")

    inputs = {name: keras.Input((1,), dtype="string", name=name) for name in names}
    encoded = [
        keras.layers.CategoryEncoding(num_tokens=4, output_mode="multi_hot")(
            keras.layers.StringLookup(vocabulary=KINDS)(inputs[name])
        )
        for name in names
    ]
    hidden = keras.layers.Dense(16)(keras.layers.Concatenate()(encoded))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile("sgd", "mse", run_eagerly=True)
    dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).repeat().batch(64)
    try:
        model.fit(dataset, steps_per_epoch=1_000_000, verbose=0)
    except Exception as error:
        print("FACT failed with", type(error).__name__)
"""


def test_no_trial_of_it_fails_the_scripts_own_step(make_case: MakeCase) -> None:
    analysed = make_case(PETS).analysed("--budget", "15")
    assert analysed.facts == [], analysed.stderr
    script = analysed.session.script
    assert script.outcome == "stopped"
    assert "A trial ended it" not in (script.detail or "")
    reasons = [one.trial.reason or "" for one in analysed.session.findings]
    assert not any("It failed with" in reason for reason in reasons), reasons
