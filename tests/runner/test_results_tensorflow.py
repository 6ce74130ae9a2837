"""Two versions of a training, really run: a pipeline in parallel, and one in another order."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.runner.native_runs import NativeRun, native_run
from pipediag.runner.results import compared
from pipediag.session.messages import RunSettings

pytestmark = pytest.mark.tensorflow

TRAIN = """
import numpy as np
import tensorflow as tf

x = np.random.rand(200, 8).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x.sum(1)))
dataset = dataset.map(lambda a, b: (a * 2.0, b)).shuffle(200).batch(8)
"""
FIT = """
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(dataset, epochs=2, verbose=0)
"""
LOOP = """
weights = tf.Variable(tf.zeros([8, 1]))

@tf.function(jit_compile=True)
def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((a @ weights - b[:, None]) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))

for a, b in dataset:
    step(a, b)
"""


def version(folder: Path, text: str) -> NativeRun:
    folder.mkdir()
    (folder / "train.py").write_text(text, encoding="utf-8")
    settings = RunSettings("train.py", (), module=False, capture_directory="")
    return native_run(folder.name, settings, folder, folder / "settings.json")


@pytest.mark.parametrize(
    ("training", "changed", "batches", "losses"),
    [
        (FIT, ("(a * 2.0, b))", "(a * 2.0, b), 2)"), "are equal.", "are equal."),
        (LOOP, ("shuffle(200)", "shuffle(200, 7)"), "are equal up to order.", "within what seeds"),
        (LOOP, ("a * 2.0", "a * 9.0"), "are different", "not only by the seed"),
    ],
    ids=["parallel", "order", "values"],
)
def test_a_rewrite_is_told_from_a_change(
    tmp_path: Path, training: str, changed: tuple[str, str], batches: str, losses: str
) -> None:
    old, new = TRAIN + training, TRAIN.replace(*changed) + training
    said = compared(version(tmp_path / "old", old), version(tmp_path / "new", new))
    assert len(said) == 2
    assert batches in said[0], said
    assert losses in said[1], said
