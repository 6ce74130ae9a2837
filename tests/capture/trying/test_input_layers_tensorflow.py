"""The layers of a real model that prepare its inputs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.captured import told_by

pytestmark = pytest.mark.tensorflow

MODEL = """
import json
import keras
import tensorflow as tf
from pipediag.capture.trying.model_variants import input_layers, inseparable

text = keras.Input((), dtype="string", name="text")
day = keras.Input((1,), dtype="string", name="day")
price = keras.Input((2,), name="price")
words = keras.layers.TextVectorization(
    vocabulary=["a", "b", "c"], output_sequence_length=4, name="words"
)
days = keras.layers.StringLookup(vocabulary=["mon", "tue"], name="days")
as_vector = keras.layers.CategoryEncoding(num_tokens=4, output_mode="multi_hot", name="vector")
embedded = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(6, 8)(words(text)))
joined = keras.layers.Concatenate()([embedded, as_vector(days(day)), price])
result = keras.layers.Dense(1, name="result")(keras.layers.BatchNormalization()(joined))
model = keras.Model({"text": text, "day": day, "price": price}, result)
class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.words = words
class Trains(keras.Model):
    pass
with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
    distributed = keras.Model(model.inputs, result)

print(json.dumps({
    "name": "model",
    "layers": [[one.name, one.kind, one.behind_input, one.handed_on]
               for one in input_layers(model)],
    "own": [[one.name, one.behind_input] for one in input_layers(Own())],
    "inseparable": [inseparable(one)
                    for one in (model, Own(), Trains(model.inputs, result), distributed)],
}))
"""


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    return told_by(MODEL)["model"]


def test_what_prepares_inputs_is_found(said: dict[str, Any]) -> None:
    assert said["layers"] == [
        ["words", "TextVectorization", True, True],
        ["days", "StringLookup", True, False],
        ["vector", "CategoryEncoding", True, True],
    ]
    assert said["own"] == [["words", False]]


def test_models_of_own_classes_and_under_a_strategy_are_no_sum_of_layers(
    said: dict[str, Any],
) -> None:
    assert said["inseparable"] == [False, True, True, True]
