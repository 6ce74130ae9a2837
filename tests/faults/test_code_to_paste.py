"""The code in the advice on repeated compiling does what is said of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from pipediag.rules.tracing import REPEATED_COMPILE
from tests.rules.sessions import only
from tests.rules.test_tracing import compiled, on_many_lengths, session_with

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

MODEL = """
import json
import sys
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
x = np.random.rand(64, 4).astype("float32")
y = x.sum(1)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
traces = []
def squared(target, found):
    traces.append(found.shape)
    return keras.losses.mean_squared_error(target, found)
model.compile("adam", squared)
code = json.loads(sys.argv[1])
build, keep, fresh, *reset = code
for line in (build, keep, fresh):
    exec(line)
losses = []
for fold in range(3):
    for line in reset:
        exec(line)
    history = model.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    losses.append(history.history["loss"])
    after = len(traces) if fold == 0 else after
print(json.dumps({"losses": losses, "traced_again": len(traces) - after}))
"""

PADDING = """
import json
import sys
import tensorflow as tf

rows = [([1] * length, length) for length in (3, 64, 65, 100)]
signature = (tf.TensorSpec((None,), tf.int32), tf.TensorSpec((), tf.int32))
dataset = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=signature)
dataset = dataset.padded_batch(1)
dataset = eval("dataset" + json.loads(sys.argv[1])[0])
print(json.dumps([[int(ids.shape[1]), int(tf.reduce_sum(ids))] for ids, _ in dataset]))
"""


def ran(script: str, code: list[str]) -> object:
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def code_in(advice: str, beginning: str) -> list[str]:
    return [code for code in re.findall("`([^`]+)`", advice) if re.match(beginning, code)]


def test_a_model_that_is_set_back_trains_as_a_new_one_and_is_traced_once() -> None:
    advice = only(REPEATED_COMPILE, session_with(compiled(40.0))).advice
    told = ran(MODEL, code_in(advice, r"model\.|initial|fresh|for "))
    assert isinstance(told, dict)
    first, *others = told["losses"]
    assert others == [pytest.approx(first), pytest.approx(first)]
    assert told["traced_again"] == 0


def test_batches_are_padded_to_few_lengths() -> None:
    advice = only(REPEATED_COMPILE, on_many_lengths()).advice
    assert ran(PADDING, code_in(advice, r"\.map")) == [[64, 3], [64, 64], [128, 65], [128, 100]]
