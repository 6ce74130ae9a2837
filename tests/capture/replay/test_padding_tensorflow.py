"""Batches that hold less padding: the rows that are left, and what a model predicts for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.captured import told_by

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import json
import keras
import numpy as np
import tensorflow as tf
from pipediag.capture.replay import NotReplayableError
from pipediag.capture.replay.replacing import padding_cut
from pipediag.capture.trying.model_variants import ModelVariants, fixed_lengths
from pipediag.in_chunks import cut_padding, in_buckets

keras.utils.set_random_seed(1)
WIDTH = 24

def row(*ids, front=0):
    return [0] * front + list(ids) + [0] * (WIDTH - front - len(ids))

BATCHES = {
    "at the end": [row(1, 2, 3, 4), row(5)],
    "in front": [row(1, 2, front=22), row(3, 4, 5, 6, front=20)],
    "on both sides": [row(1, 2, front=10), row(3, 4, 5, 6, front=11)],
    "within": [row(1, 0, 0, 0, 5), row(2)],
    "full": [row(*range(1, 25))],
    "nothing else": [row(), row()],
}
kept = {}
for name, rows in BATCHES.items():
    cut = cut_padding(tf.constant(rows)).numpy()
    others = [[one for one in each if one] for each in (*rows, *cut.tolist())]
    kept[name] = [cut.shape[1], others[: len(rows)] == others[len(rows):]]

rng = np.random.default_rng(3)
rows = np.zeros((8, WIDTH), "int64")
rows[:, :5] = rng.integers(1, 9, (8, 5))
targets = np.arange(8.0)
plain = tf.data.Dataset.from_tensor_slices((rows, targets)).batch(4)
named = tf.data.Dataset.from_tensor_slices(({"ids": rows, "user": targets}, targets)).batch(4)
alone = tf.data.Dataset.from_tensor_slices(rows).batch(4)
longer = np.tile(np.arange(1, 11), (8, 1))
longer = np.pad(longer, ((0, 0), (0, WIDTH - 10)))
two = tf.data.Dataset.from_tensor_slices(((rows, longer), targets)).batch(4)
tagged = tf.data.Dataset.from_tensor_slices((rows, rows % 3, rows.astype("float32"))).batch(4)
shapes = {
    name: [list(one.shape) for one in tf.nest.flatten(next(iter(padding_cut([dataset]))))]
    for name, dataset in {
        "plain": plain, "named": named, "alone": alone, "two": two, "tagged": tagged
    }.items()
}
apart = [list(one.shape) for one in next(iter(padding_cut([two], together=False)))[0]]

layers, AnyLength = keras.layers, {"any_length": True}

def model(*behind, masked=True, length=WIDTH):
    result = ids = keras.Input((length,), dtype="int64", name="ids")
    for layer in (layers.Embedding(9, 4, mask_zero=masked), *behind):
        result = layer(result)
    made = keras.Model(ids, result)
    made.compile("sgd", "mse")
    return made

def averaged(**given):
    return model(layers.GlobalAveragePooling1D(), layers.Dense(1), **given)

inner = keras.Input((WIDTH, 4))
inner = keras.Model(inner, layers.LSTM(3)(inner))

def refusal(make):
    try:
        make()
    except NotReplayableError as refused:
        return str(refused)

before = list(plain)
after = list(padding_cut([plain]))
models = {
    "masked": averaged(length=None),
    "unmasked": averaged(masked=False, length=None),
    "one length": averaged(),
    "sequential": keras.Sequential([keras.Input((WIDTH,), dtype="int64"), *averaged().layers[1:]]),
    "nested": model(inner, layers.Dense(1)),
    "flat": model(layers.Flatten(), layers.Dense(1)),
    "of words": model(layers.GRU(5, return_sequences=True), layers.Dense(9)),
}

class OwnStep(keras.Model):
    def train_step(self, data):
        return super().train_step(data)

both_ways = layers.Bidirectional(layers.GRU(3, return_sequences=True))
own = model(both_ways, layers.Dense(3), length=None)
taggers = {
    "masked": own,
    "unmasked": model(layers.GRU(3, return_sequences=True), layers.Dense(3), masked=False),
    "own step": OwnStep(own.inputs, own.outputs),
    "of a row": models["one length"],
}
models["sequential"].compile("sgd", "mse")
outputs = {
    name: refusal(lambda: ModelVariants(one, print).same_outputs(before, after, cut_padding))
    for name, one in models.items()
}
tags, cut_tags = list(tagged), list(padding_cut([tagged]))
tagged_outputs = {
    name: refusal(lambda: ModelVariants(one, print).same_outputs(tags, cut_tags, cut_padding))
    for name, one in taggers.items()
}

def loss(batches):
    one = taggers["masked"]
    one.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return one.evaluate(tf.data.Dataset.from_tensors(batches[0]), verbose=0)

losses = [loss([batch[:2] for batch in each]) for each in (tags, cut_tags)]

def steps(one):
    # The model's own step, one with batches of another length, and its own again.
    one.make_train_function()
    own, failed = one.train_function, []
    own(iter(plain))
    specs = [vars(each).get("_manual_input_spec", "none") for each in one.layers]
    variants = ModelVariants(one, failed.append)
    variants.check(AnyLength)
    variants.use(AnyLength)
    one.train_function(iter(padding_cut([plain])))
    changed = one.train_function is not own
    variants.use({})
    own(iter(plain))
    again = [vars(each).get("_manual_input_spec", "none") for each in one.layers]
    refused = refusal(lambda: takes(one)) is not None
    return [len(failed), changed, one.train_function is own, specs == again, refused]

def takes(one):
    try:
        one(rows[:, :6])
    except ValueError as error:
        raise NotReplayableError(error)

trained = {name: steps(models[name]) for name in ("one length", "nested", "sequential")}
floats = tf.data.Dataset.from_tensor_slices(rng.random((8, WIDTH))).batch(4)

def lengths():
    for n in range(300):
        yield {"ids": np.arange(1, 2 + n % 8), "n": n}

spec = {"ids": tf.TensorSpec([None], tf.int64), "n": tf.TensorSpec([], tf.int64)}
varying = tf.data.Dataset.from_generator(lengths, output_signature=spec)
buckets = list(in_buckets(varying, 10))
print(json.dumps({
    "name": "padding", "kept": kept, "shapes": shapes, "apart": apart, "outputs": outputs,
    "tagged": tagged_outputs, "losses": losses, "trained": trained,
    "fixed": {name: fixed_lengths(one) for name, one in models.items()},
    "floats": refusal(lambda: padding_cut([floats])),
    "all there": sorted(int(n) for batch in buckets for n in batch["n"]) == list(range(300)),
    "most": max(int(batch["ids"].shape[0]) for batch in buckets),
    "padding": sum(int((batch["ids"] == 0).numpy().sum()) for batch in buckets),
}))
"""


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    return told_by(SCRIPT)["padding"]


def test_rows_are_cut_to_the_longest_of_their_batch_in_one_of_a_few_lengths(
    said: dict[str, Any],
) -> None:
    lengths = {name: length for name, (length, _) in said["kept"].items()}
    assert lengths == {
        "at the end": 6,
        "in front": 6,
        "on both sides": 6,
        "within": 6,
        "full": 24,
        "nothing else": 24,
    }
    assert all(same for _, same in said["kept"].values())


def test_the_ids_of_a_batch_are_found_in_its_features(said: dict[str, Any]) -> None:
    assert said["shapes"] == {
        "plain": [[4, 6], [4]],
        "named": [[4, 6], [4], [4]],
        "alone": [[4, 6]],
        "two": [[4, 12], [4, 12], [4]],
        "tagged": [[4, 6], [4, 6], [4, 6]],
    }
    assert said["apart"] == [[4, 6], [4, 12]]
    assert "no rows of ids" in said["floats"]


def test_a_model_that_does_not_ignore_padding_is_told_from_one_that_does(
    said: dict[str, Any],
) -> None:
    outputs = said["outputs"]
    assert outputs["masked"] is None
    assert outputs["unmasked"].startswith("The model's outputs differ")
    assert outputs["one length"] is outputs["sequential"] is outputs["nested"] is None
    assert "another length: ValueError: Input 0 " in outputs["flat"]
    assert "another shape" in outputs["of words"]


def test_targets_for_each_place_of_a_row_are_cut_as_the_row_is(said: dict[str, Any]) -> None:
    found = said["tagged"]
    assert found["masked"] is None
    assert said["losses"][0] == pytest.approx(said["losses"][1], rel=1e-4)
    for name in ("unmasked", "own step"):
        assert "mask" in found[name]
    assert "another shape" in found["of a row"]


def test_a_model_of_one_length_is_trained_with_another_and_is_the_users_again(
    said: dict[str, Any],
) -> None:
    as_before = [0, True, True, True, True]
    trained = said["trained"]
    assert (trained["one length"], trained["nested"]) == (as_before, as_before)
    assert trained["sequential"] == [0, True, True, True, False]
    fixed = said["fixed"]
    assert (fixed["masked"], fixed["one length"]) == ({}, {"ids": 24})
    # It takes rows of any length, whatever its input is.
    assert fixed["sequential"] == {}


def test_buckets_hold_all_examples_and_little_padding(said: dict[str, Any]) -> None:
    assert (said["all there"], said["most"]) == (True, 10)
    # Two lengths to a bucket: half of its examples are one shorter.
    assert said["padding"] <= 150
