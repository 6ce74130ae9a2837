"""Models that are taken apart for trials keep their layers, their weights and their training."""

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


# The twin is trained on as many batches of the same data, which pipediag has no part in.
SENTENCES = """
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(5)
    WORDS = [f"word{number}" for number in range(500)]
    drawn = np.random.randint(0, len(WORDS), size=(640, 32))
    sentences = np.array([" ".join(WORDS[number] for number in row) for row in drawn])
    labels = np.random.randint(0, 2, size=(640, 1)).astype("float32")

    def built():
        model = keras.Sequential(
            [
                keras.Input(shape=(), dtype="string"),
                keras.layers.TextVectorization(
                    output_sequence_length=32, vocabulary=WORDS, name="to_ids"
                ),
                keras.layers.Embedding(len(WORDS) + 2, 8),
                keras.layers.GlobalAveragePooling1D(),
                keras.layers.Dense(1, activation="sigmoid"),
            ]
        )
        model.compile("sgd", "binary_crossentropy")
        return model

    def batch(number):
        rows = slice(64 * (number % 10), 64 * (number % 10) + 64)
        return tf.constant(sentences[rows]), tf.constant(labels[rows])

    model, twin = built(), built()
    twin.set_weights(model.get_weights())
    dataset = tf.data.Dataset.from_tensor_slices((sentences, labels)).repeat().batch(64)
    try:
        model.fit(dataset, steps_per_epoch=1_000_000, verbose=0)
    finally:
        steps = int(model.optimizer.iterations)
        for number in range(steps):
            twin.train_on_batch(*batch(number))
        pairs = zip(model.get_weights(), twin.get_weights(), strict=True)
        alike = all(np.allclose(own, other, rtol=1e-4, atol=1e-6) for own, other in pairs)
        print("FACT trained alike", steps >= 10, alike)
        print("FACT layers", [layer.name for layer in model.layers][0])
        words = batch(0)[0]
        print("FACT takes sentences", np.allclose(model(words), twin(words), rtol=1e-4))
"""


def test_its_layers_are_tried_in_the_pipeline_and_it_keeps_them_and_its_weights(
    make_case: MakeCase,
) -> None:
    analysed = make_case(SENTENCES).analysed("--budget", "90")
    assert analysed.facts == [
        "FACT trained alike True True",
        "FACT layers to_ids",
        "FACT takes sentences True",
    ], analysed.stderr
    session = analysed.session
    assert session.script.outcome == "stopped"
    finding = next(one for one in session.findings if one.rule == "preprocessing-in-model")
    assert finding.evidence["layers"] == "to_ids (TextVectorization)"
    assert session.trials is not None, session.trials_missing
    # How fast it was, and what share of a step its text work took, is not for a test to judge.
    tried = {block.arm for block in session.trials.blocks}
    assert finding.rule in tried, finding.trial.reason
    assert finding.trial.caveats
