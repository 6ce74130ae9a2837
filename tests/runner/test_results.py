"""What is said of the batches and losses of two versions of a training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipediag.runner.native_runs import NativeRun, native_run
from pipediag.runner.results import Seen, compared, of_batches, of_losses
from pipediag.session.messages import RunSettings

ROWS = [["a", 1.0, 2.0], ["b", 3.0, 4.0], ["c", 5.0, 6.0]]


def seen(rows: list[Any] = ROWS, losses: list[float] = (), **other: Any) -> Seen:  # type: ignore[assignment]
    return Seen(rows, other.get("problem"), list(losses))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (seen(), "the first 3 rows are equal."),
        (seen([["a", 1.0, 2.0 + 1e-6], *ROWS[1:]]), "are equal up to rounding."),
        (seen(ROWS[::-1]), "are equal up to order."),
        (seen([["d", 1.0, 2.0], *ROWS[1:]]), "are different: 2 of them are in both"),
        (seen([["a", 1.0, 2.1], *ROWS[1:]]), "are different: 2 of them are in both"),
        (seen(ROWS[:2]), "the first 2 rows are equal."),
        (seen([]), "the new version's could not be read; none was taken."),
        (seen(problem="no loop"), "the new version's could not be read; no loop."),
    ],
)
def test_batches_are_equal_or_the_sentence_says_how_they_differ(new: Seen, said: str) -> None:
    assert said in of_batches(seen(), new)


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ([3.0, 2.0], "of the first 2 steps are equal."),
        ([3.0, 2.0 + 1e-6, 1.0], "are equal up to rounding."),
        ([3.1, 2.1, 1.1], "agree within what seeds do"),
        ([4.0, 3.0, 2.0], "differ, and not only by the seed"),
        ([], "were not compared"),
    ],
)
def test_losses_agree_within_what_another_seed_changes(new: list[float], said: str) -> None:
    old, other_seed = seen(losses=[3.0, 2.0, 1.0]), seen(losses=[3.1, 1.9, 1.1])
    assert said in of_losses(old, seen(losses=new), other_seed)


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


@pytest.mark.tensorflow
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
