"""Layers of a real model in 16 bits, and back."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.tensorflow

MODEL = """
import keras
from pipediag.capture.frameworks.keras.layer_policies import LayerPolicies

ids = keras.Input((4,), dtype="int32")
hidden = keras.layers.Embedding(9, 8)(ids)
hidden = keras.layers.LSTM(4)(hidden)
hidden = keras.layers.Dense(4, dtype="float64", name="chosen")(hidden)
model = keras.Model(ids, keras.layers.Dense(1, name="result")(hidden))

def say(model):
    print(*(f"{layer.name}={layer.compute_dtype}/{layer.variable_dtype}" for layer in model.layers))

policies = LayerPolicies(model)
for policy in (None, "mixed_bfloat16", None):
    policies.use(policy)
    say(model)

keras.mixed_precision.set_global_policy("mixed_bfloat16")
mixed = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, name="a"),
    keras.layers.Dense(1, dtype="float32", name="b")])
policies = LayerPolicies(mixed)
for policy in ("float32", None):
    policies.use(policy)
    say(mixed)
keras.mixed_precision.set_global_policy("float32")

simple = keras.Sequential([keras.layers.Dense(2, name="a"), keras.layers.Dense(1, name="b")])
LayerPolicies(simple).use("mixed_float16")
say(simple)
"""


def test_only_layers_that_nobody_set_compute_in_sixteen_bits() -> None:
    said = subprocess.run(
        [sys.executable, "-c", MODEL], capture_output=True, text=True, check=True, timeout=120
    )
    before, short, after, single, mixed_again, simple_one = said.stdout.splitlines()

    plain, mixed = "float32/float32", "bfloat16/float32"
    assert before.split()[1:] == [
        f"embedding={plain}", f"lstm={plain}", "chosen=float64/float64", f"result={plain}"
    ]  # fmt: skip
    assert short.split()[1:] == [
        f"embedding={mixed}", f"lstm={mixed}", "chosen=float64/float64", f"result={plain}"
    ]  # fmt: skip
    assert after == before
    assert simple_one.split() == ["a=float16/float32", f"b={plain}"]
    assert single.split() == [f"a={plain}", f"b={plain}"]
    assert mixed_again.split() == [f"a={mixed}", f"b={plain}"]
