"""The examples of docs/optimizers.md, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tests

PAGE = Path(tests.__file__).parent.parent / "docs" / "optimizers.md"
TRAINS, LOOKS_UP = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.tensorflow
def test_the_first_example_trains(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(TRAINS, names)
    assert "Epoch 2/2" in capsys.readouterr().out
    assert len(names["model"].history.history["loss"]) == 2


@pytest.mark.tensorflow
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_the_lookup_gives_what_keras_gives_and_does_not_read_the_table(policy: str) -> None:
    import keras
    import tensorflow as tf

    names: dict[str, Any] = {}
    exec(LOOKS_UP, names)
    ids = np.array([[1, 5], [5, 0]])
    kinds = names["RowLookup"], keras.layers.Embedding
    keras.config.set_dtype_policy(policy)
    ours, of_keras = (
        keras.Sequential([keras.Input((2,), dtype="int32"), kind(1009, 3)]) for kind in kinds
    )
    ours.set_weights(of_keras.get_weights())

    assert ours(ids).dtype == of_keras(ids).dtype
    np.testing.assert_array_equal(tf.cast(ours(ids), "float32"), tf.cast(of_keras(ids), "float32"))
    assert reads_of_variables(of_keras, ids) > 0
    assert reads_of_variables(ours, ids) == 0


def reads_of_variables(model: Any, ids: np.ndarray) -> int:
    import tensorflow as tf

    graph = tf.function(model.__call__).get_concrete_function(tf.constant(ids)).graph
    return [operation.type for operation in graph.get_operations()].count("ReadVariableOp")


def test_the_table_names_each_optimizer() -> None:
    package = PAGE.parent.parent / "pipediag" / "optimizers" / "__init__.py"
    exported = set(re.findall(r'"(Lazy\w+)"', package.read_text(encoding="utf-8")))
    assert len(exported) == 6
    assert exported == set(re.findall(r"^\| `(Lazy\w+)`", PAGE.read_text(encoding="utf-8"), re.M))
