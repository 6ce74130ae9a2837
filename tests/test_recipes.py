"""The recipes of docs/recipes.md: what they name, and the code before and after."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipediag.rules.registry import BY_ID

PAGE = (Path(__file__).parents[1] / "docs" / "recipes.md").read_text(encoding="utf-8")
DIFFS = re.findall(r"```diff\n(.*?)```", PAGE, re.DOTALL)


def version(diff: str, sign: str) -> str:
    """Return the code with the lines of that sign."""
    return "".join(f"{line[1:]}\n" for line in diff.splitlines() if line[:1] in ("", " ", sign))


def test_rules_are_ones_that_exist() -> None:
    named = re.findall(r"`([a-z]+(?:-[a-z]+)+)`", PAGE)
    assert len(named) >= 10
    assert set(named) <= set(BY_ID)


def materials(directory: Path) -> dict[str, Any]:
    """Return what the recipes' code takes for granted."""
    import keras
    import tensorflow as tf

    table = np.arange(32, dtype="float32").reshape(8, 4)
    files = [str(directory / name) for name in ("a", "b")]
    for file, rows in zip(files, (table[:4], table[4:]), strict=True):
        with tf.io.TFRecordWriter(file) as writer:
            for row in rows:
                floats = tf.train.Feature(float_list=tf.train.FloatList(value=row))
                features = tf.train.Features(feature={"x": floats})
                writer.write(tf.train.Example(features=features).SerializeToString())
    vectorize = keras.layers.TextVectorization(output_sequence_length=3)
    vectorize.adapt(["good film", "bad film"])
    x, y = tf.constant(["good film", "bad"]), tf.constant([1.0, 0.0])
    return {
        "json": json,
        "keras": keras,
        "np": np,
        "tf": tf,
        "examples": tf.data.Dataset.from_tensor_slices(table),
        "load": lambda row: row * 2,
        "records": tf.data.TFRecordDataset(files),
        "spec": {"x": tf.io.FixedLenFeature([4], tf.float32)},
        "lines": tf.data.Dataset.from_tensor_slices(
            [json.dumps({"x": [*r]}) for r in table.tolist()]
        ),
        "table": table,
        "files": files,
        "batches": tf.data.Dataset.from_tensor_slices((table, table[:, :1])).batch(2),
        "model": keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]),
        "vectorize": vectorize,
        "layers": [keras.layers.Embedding(9, 2), keras.layers.Flatten(), keras.layers.Dense(1)],
        "texts": tf.data.Dataset.from_tensor_slices((x, y)).batch(2),
        "written": [],
    }


def rows(dataset: Any) -> list[Any]:
    """Return the elements of all batches, in an order of their own."""
    import tensorflow as tf

    flat = [np.asarray(part) for batch in dataset for part in tf.nest.flatten(batch)]
    return sorted(str(row) for part in flat for row in part)


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("default")  # Keras warns of its own default for `shuffle`
@pytest.mark.parametrize("number", range(len(DIFFS)))
def test_code_runs_before_and_after_with_the_same_examples(number: int, tmp_path: Path) -> None:
    before, after = materials(tmp_path), materials(tmp_path)
    before["model"].compile("adam", "mse")
    after["model"].compile("adam", "mse")
    exec(version(DIFFS[number], "-"), before)
    exec(version(DIFFS[number], "+"), after)
    if "dataset" in before:
        assert rows(before["dataset"]) == rows(after["dataset"])
