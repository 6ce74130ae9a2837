"""Which ids of real pipelines stand for tokens that no table has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.frameworks.programs import told_by

pytestmark = pytest.mark.tensorflow

PIPELINES = """
import json
import keras
import numpy as np
import tensorflow as tf
from pipediag.capture.frameworks.tensorflow.tables.pipeline_tokens import PipelineTokens
from pipediag.capture.frameworks.tensorflow.tables.reading import TracedTables
from pipediag.capture.runtime import UntoldTokensError

random, words = np.random.default_rng(0), ["a", "b", "c", "d"]
tokens = random.choice(["a", "b", "c", "d", "x", "y", "z"], (64, 5))
numbers = random.integers(0, 12, (64, 5))
labels = np.zeros((64, 1), "float32")
layers = keras.layers

def initialiser(first=0, keys=words):
    ids = np.arange(first, first + len(keys))
    return tf.lookup.KeyValueTensorInitializer(tf.constant(keys), tf.constant(ids, tf.int64))

def table(default, first=0):
    return tf.lookup.StaticHashTable(initialiser(first), default)

def given(made):
    return lambda one, label: (made(one), label)

def from_slices(values=tokens):
    return tf.data.Dataset.from_tensor_slices((values, labels))

def told(name, dataset, part=0):
    try:
        found = PipelineTokens(dataset).behind(part)
    except UntoldTokensError as lack:
        said = {"untold": str(lack)}
    else:
        said = {} if found is None else {
            "unknown": sorted(found.out_of_vocabulary), "zero": found.zero_is_a_token}
    print(json.dumps({"name": name, **said}))

one = table(4)
joined = layers.StringLookup(vocabulary=words, num_oov_indices=3, mask_token="")
strings = layers.StringLookup(vocabulary=words)
whole = layers.IntegerLookup(vocabulary=[1, 2, 3])
buckets = tf.lookup.StaticVocabularyTable(initialiser(), 4)
replaced, padded = table(-1), table(0, first=1)
vectors = layers.TextVectorization(vocabulary=words, output_sequence_length=4)

told("table", from_slices().map(given(one.lookup)).batch(8).prefetch(2))
told("layer", from_slices().shuffle(64).map(given(strings)).batch(8))
told("several", from_slices().batch(8).map(given(joined)).repeat())
told("none", from_slices().map(given(layers.StringLookup(vocabulary=words, num_oov_indices=0))))
told("integers", from_slices(numbers).batch(8).map(given(whole), num_parallel_calls=2))
told("hashed integers", from_slices(numbers).batch(8).map(given(
    layers.IntegerLookup(vocabulary=[1, 2, 3], num_oov_indices=2, mask_token=0))))
told("buckets", from_slices().map(given(buckets.lookup)).batch(8))
told("replaced", from_slices().map(given(lambda s: tf.where(replaced.lookup(s) == -1,
    tf.constant(7, tf.int64), replaced.lookup(s)))))
told("text", tf.data.Dataset.from_tensor_slices((tokens[:, 0], labels)).map(given(vectors)))
told("later", from_slices().map(given(one.lookup)).map(
    lambda ids, label: (tf.cast(ids[:-1], tf.int32), ids[-1])).batch(8).cache())
told("label", from_slices().map(lambda s, label: (label, one.lookup(s))).batch(8), part=1)
told("zipped", tf.data.Dataset.zip((tf.data.Dataset.range(64),
    from_slices().map(given(one.lookup)))).batch(8), part=1)
told("named", from_slices().map(lambda s, label: ({"b": label, "a": one.lookup(s)}, label)))
ragged = tf.data.Dataset.from_tensor_slices(tf.strings.split(["a b x", "c", "y z"]))
told("ragged", ragged.map(one.lookup).ragged_batch(2).map(lambda ids: ids.to_tensor(-1)))

marked = tf.lookup.StaticHashTable(initialiser(keys=["<pad>", "[UNK]", "a", "b"]), 1)
told("marked", from_slices().map(given(marked.lookup)).padded_batch(8))

told("ids", from_slices(numbers).map(lambda ids, label: (tf.identity(ids), label)).batch(8))
told("other part", from_slices().map(given(one.lookup)).batch(8), part=1)
told("shared", from_slices().map(given(table(0).lookup)).batch(8))
told("padded", from_slices().map(given(padded.lookup)).padded_batch(8))
told("filled", from_slices().map(given(
    lambda s: tf.pad(padded.lookup(s), [[0, 3]]))).batch(8))
told("moved", from_slices().map(given(lambda s: one.lookup(s) + 1)).batch(8))
told("flat", from_slices().flat_map(lambda s, label: tf.data.Dataset.from_tensors(
    (one.lookup(s), label))).batch(8))

def counted(name, made, known, values=tokens):
    # What the step looks up, by the ids of its own batches, and by NumPy over the same tokens.
    dataset = from_slices(values).map(given(made)).batch(8)
    model = keras.Sequential([keras.Input((5,), dtype="int64"), layers.Embedding(20, 3),
        layers.Flatten(), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.make_train_function()
    model.train_function(iter(dataset))
    seen = [cell.cell_contents for cell in model.train_function.__closure__]
    step = TracedTables([one for one in seen if hasattr(one, "_list_all_concrete_functions")])
    (part,) = step.tables[0].passage.parts
    unknown = sorted(PipelineTokens(dataset).behind(part).out_of_vocabulary)
    ids = [one.ids for batch in dataset for one in step.tables[0].looked_up(step.of_batch(batch))]
    print(json.dumps({"name": name, "counted": int(np.isin(np.concatenate(ids), unknown).sum()),
        "expected": int((~np.isin(values, known)).sum())}))

counted("counted table", one.lookup, words)
counted("counted layer", strings, words)
counted("counted several", joined, words)
counted("counted buckets", buckets.lookup, words)
counted("counted integers", whole, [1, 2, 3], numbers)
"""


@pytest.fixture(scope="module")
def pipelines() -> dict[str, dict[str, Any]]:
    return told_by(PIPELINES)


@pytest.mark.parametrize(
    ("name", "unknown", "zero"),
    [
        ("table", [4], None),
        ("layer", [0], True),
        ("several", [1, 2, 3], False),
        ("none", [-1], None),
        ("integers", [0], True),
        ("hashed integers", [1, 2], False),
        ("buckets", [4, 5, 6, 7], None),
        ("replaced", [7], None),
        ("text", [1], False),
        ("later", [4], None),
        ("label", [4], None),
        ("zipped", [4], None),
        ("named", [4], None),
        ("ragged", [4], None),
        ("marked", [1], False),
    ],
)
def test_the_ids_of_unknown_tokens(
    pipelines: dict[str, dict[str, Any]], name: str, unknown: list[int], zero: bool | None
) -> None:
    assert pipelines[name] == {"unknown": unknown, "zero": zero}


@pytest.mark.parametrize("name", ["ids", "other part"])
def test_what_no_table_of_tokens_makes(pipelines: dict[str, dict[str, Any]], name: str) -> None:
    assert pipelines[name] == {}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("shared", "id 0 stands for an unknown one and for a known one alike"),
        ("padded", "id 0 stands for an unknown one and for padding alike"),
        ("filled", "id 0 stands for an unknown one and for padding alike"),
        ("moved", "lost on their way through its `AddV2`"),
        ("flat", "lost on their way through its `FlatMap`"),
    ],
)
def test_why_ids_of_unknown_tokens_are_not_known(
    pipelines: dict[str, dict[str, Any]], name: str, reason: str
) -> None:
    assert reason in pipelines[name]["untold"]


@pytest.mark.parametrize("name", ["table", "layer", "several", "buckets", "integers"])
def test_unknown_tokens_are_as_many_as_numpy_counts(
    pipelines: dict[str, dict[str, Any]], name: str
) -> None:
    found = pipelines[f"counted {name}"]

    assert found["counted"] == found["expected"] > 0
