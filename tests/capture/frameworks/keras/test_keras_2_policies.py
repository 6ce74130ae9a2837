"""Layers of a real model of Keras 2 in 16 bits, and back."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from tests.capture.frameworks.programs import told_by

pytestmark = [
    # Not a matter of JAX, but of its environment: the first one must do without tf_keras.
    pytest.mark.jax,
    pytest.mark.skipif(
        importlib.util.find_spec("tf_keras") is None, reason="tf_keras is not installed"
    ),
]

MODELS = """
import json
import numpy as np
import tensorflow as tf
from pipediag.capture.frameworks.keras.model_variants import Keras2LayerPolicies

keras = tf.keras
package = keras.Model.__module__.partition(".")[0]
generator = np.random.default_rng(0)
ids = generator.integers(0, 9, (32, 4))
numbers = generator.normal(size=(32, 3)).astype("float32")
labels = np.ones((32, 1), "float32")
scaling = keras.layers.Normalization()
scaling.adapt(numbers)

class Scale(keras.layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight("scale", shape[-1:], initializer="ones")
        self.seen = self.add_weight("seen", (), initializer="zeros", trainable=False)
        self.count = self.add_weight("count", (), dtype="int32", trainable=False)

    def call(self, inputs):
        self.seen.assign_add(tf.cast(tf.reduce_mean(inputs), tf.float32))
        return inputs * self.scale

def made(policy):
    keras.mixed_precision.set_global_policy(policy)
    keras.utils.set_random_seed(1)
    layers = keras.layers
    tokens, scalars = keras.Input((4,), dtype="int32"), keras.Input((3,))
    hidden = layers.Embedding(9, 8)(tokens)
    hidden = layers.MultiHeadAttention(2, 4)(hidden, hidden)
    hidden = layers.LayerNormalization()(layers.LSTM(4)(hidden))
    chosen = layers.Dense(3, dtype="float64", name="chosen")(hidden)
    other = layers.BatchNormalization()(layers.Dense(5)(scaling(scalars)))
    hidden = Scale()(layers.Concatenate()([chosen, other, hidden]))
    result = layers.Dense(1, name="result", dtype="float32")(hidden)
    model = keras.Model([tokens, scalars], result)
    model.compile("adam", "mse")
    keras.mixed_precision.set_global_policy("float32")
    return model

def trained(model):
    losses = [float(model.train_on_batch((ids, numbers), labels)) for _ in range(3)]
    return losses, [weight.tolist() for weight in model.get_weights()]

def formats(model):
    return [[layer.name.rstrip("_0123456789"), layer.compute_dtype] for layer in model.layers]

def attributes(model):
    return [id(value) for layer in model._flatten_layers() for value in vars(layer).values()
        if isinstance(value, tf.Variable)]

plain, mixed = made("float32"), made("mixed_bfloat16")
own = attributes(plain)
weights = plain.get_weights()
native = trained(made("float32"))

policies = Keras2LayerPolicies(plain, package)
policies.use("mixed_bfloat16")
listed = [id(variable) for variable in plain.variables]
told = {"name": "model", "formats": formats(plain), "short": trained(plain) == trained(mixed),
    "short_is_other": trained(made("mixed_bfloat16")) != native}
policies.use(None)
told["back"] = attributes(plain) == own
told["listed"] = listed == [id(variable) for variable in plain.variables]

again = made("float32")
policies = Keras2LayerPolicies(again, package)
policies.use("mixed_bfloat16")
policies.use(None)
told["plain"] = trained(again) == native

short = made("mixed_bfloat16")
policies = Keras2LayerPolicies(short, package)
policies.use("float32")
told["single"] = trained(short) == native
policies.use(None)
told["own"] = formats(short) == formats(mixed)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return told_by(MODELS, TF_USE_LEGACY_KERAS="1")["model"]


def test_layers_that_somebody_set_stay_as_they_are(told: dict[str, Any]) -> None:
    formats = dict(told["formats"])
    assert formats["chosen"] == "float64"
    assert {formats[name] for name in ("result", "normalization")} == {"float32"}
    assert {formats[name] for name in ("embedding", "lstm", "scale")} == {"bfloat16"}


def test_a_model_trains_as_one_built_so_and_afterwards_it_is_the_users_own(
    told: dict[str, Any],
) -> None:
    assert told["short"]
    assert told["short_is_other"]
    assert told["single"]
    assert told["back"]
    assert told["listed"]
    assert told["plain"]
    assert told["own"]
