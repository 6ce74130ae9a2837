"""A real model without the layers that prepare its inputs, and with them again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.captured import told_by

pytestmark = pytest.mark.tensorflow

MODEL = """
import json
import keras
import numpy as np
import tensorflow as tf
from pipediag.capture.trying.model_variants import ModelVariants, input_layers, unsplit
from pipediag.capture.replay import NotReplayableError

keras.utils.set_random_seed(1)
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
model.compile(optimizer="adam", loss="mse", metrics=["mae"])

rng = np.random.default_rng(2)
inputs = {
    "text": np.array(["a b", "c", "b b a c", "other"] * 4),
    "day": np.array([["mon"], ["tue"], ["wed"], ["mon"]] * 4),
    "price": rng.random((16, 2), dtype="float32"),
}
dataset = tf.data.Dataset.from_tensor_slices((inputs, rng.random((16, 1)))).batch(4)
model.make_train_function()
model.train_function(iter(dataset))
own_function, places = model.train_function, [len(one._inbound_nodes) for one in model.layers]
at_first = (model.get_weights(), [variable.numpy() for variable in model.optimizer.variables])

failed = []
variants = ModelVariants(model, failed.append)
moved = {"moved_layers": ("words", "days", "vector")}

def trained(settings):
    model.set_weights(at_first[0])
    for variable, value in zip(model.optimizer.variables, at_first[1]):
        variable.assign(value)
    model.reset_metrics()
    variants.check(settings)
    prepare = variants.on_elements(settings)
    variants.use(settings)
    iterator = iter(dataset if prepare is None else dataset.map(prepare, num_parallel_calls=2))
    for _ in range(3):
        model.train_function(iterator)
    results = {name: float(value) for name, value in model.get_metrics_result().items()}
    return results, [weight.tolist() for weight in model.get_weights()]

base = trained({})
without = trained(moved)
# An iterator of the base, as the answering side puts there where a variant fails.
model.train_function(iter(dataset))
own_again = model.train_function is own_function
variants.use({})

refusals = []
for layers in (("nobody",), ("result",)):
    try:
        variants.check({"moved_layers": layers})
    except NotReplayableError as refusal:
        refusals.append(str(refusal))

class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.words = words

print(json.dumps({
    "name": "model", "base": base, "without": without,
    "spec": [str(s.dtype) for s in tf.nest.flatten(
        dataset.map(variants.on_elements(moved)).element_spec)],
    "own_again": own_again and model.train_function is own_function,
    "failed": len(failed),
    "places": [len(one._inbound_nodes) for one in model.layers] == places,
    "layers": [[one.name, one.kind, one.behind_input, one.handed_on, one.row_bytes]
               for one in input_layers(model)],
    "unsplit": [unsplit(model), unsplit(Own())],
    "own": [[one.name, one.behind_input] for one in input_layers(Own())],
    "refusals": refusals,
}))
"""


@pytest.fixture(scope="module")
def said() -> dict[str, object]:
    return told_by(MODEL)["model"]


def test_the_same_batches_train_the_same_weights_and_the_model_is_the_users_again(
    said: dict[str, object],
) -> None:
    assert said["without"] == said["base"]
    kinds = ("float32", "int64", "float32", "float64")
    assert said["spec"] == [f"<dtype: '{kind}'>" for kind in kinds]
    assert (said["own_again"], said["places"]) == (True, True)
    # A batch that was not prepared is trained by the user's own.
    assert said["failed"] == 1


def test_what_prepares_inputs_is_found_and_what_can_not_be_taken_off_is_said(
    said: dict[str, Any],
) -> None:
    assert said["layers"] == [
        ["words", "TextVectorization", True, True, 4 * 8],
        ["days", "StringLookup", True, False, 8],
        ["vector", "CategoryEncoding", True, True, 4 * 4],
    ]
    assert said["own"] == [["words", False]]
    assert said["unsplit"][0] is None
    assert "a class of its own" in said["unsplit"][1]
    assert all("directly behind its inputs" in one for one in said["refusals"])
    assert len(said["refusals"]) == 2
