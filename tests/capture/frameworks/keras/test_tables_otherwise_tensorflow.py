"""A real Keras model trained otherwise than its script asked for: what passes over its table."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.frameworks.programs import told_by

pytestmark = pytest.mark.tensorflow

MODELS = """
import json
import tempfile
import keras
import numpy as np
import tensorflow as tf
from pipediag.capture.frameworks.keras.compiled import CompiledVariants
from pipediag.capture.frameworks.tensorflow.tables.traced_step import TracedTables

layers, optimizers = keras.layers, keras.optimizers
data = tf.data.Dataset.from_tensors((np.ones((8, 5), "int32"), np.ones((8, 1), "float32"))).repeat()

def functions_of(model):
    found, cells = [], [model.train_function]
    while cells:
        for cell in getattr(cells.pop(), "__closure__", None) or ():
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            if hasattr(value, "_list_all_concrete_functions"):
                found.append(value)
            elif callable(value):
                cells.append(value)
    return found

def stepped(model):
    model.train_function(iter(data))
    functions = functions_of(model)
    use = TracedTables(functions).tables[0].use
    return {"gradient": use.gradient, "whole": use.writes_whole,
        "operations": sorted(use.whole_table_operations)}

def checkpointed(model):
    path = tf.train.Checkpoint(model=model).write(f"{tempfile.mkdtemp()}/kept")
    return [name for name, _ in tf.train.list_variables(path)]

def told(name, optimizer, settings, **options):
    ids = keras.Input((5,), dtype="int32")
    vectors = layers.Flatten()(layers.Embedding(50, 3, **options)(ids))
    model = keras.Model(ids, layers.Dense(1)(vectors))
    model.compile(optimizer, "mse")
    model.make_train_function()
    model.train_function(iter(data))
    failed, saved = [], checkpointed(model)
    variants = CompiledVariants(model, failed.append)
    variants.check(settings)
    before = stepped(model)
    variants.use(settings)
    during = stepped(model)
    variants.use({})
    model.make_train_function(force=True)
    after = stepped(model)
    print(json.dumps({"name": name, "before": before, "during": during, "after": after,
        "failed": [str(one) for one in failed], "own": model.optimizer is optimizer,
        "saved": saved, "saved after": checkpointed(model)}))

told("averaged", optimizers.Adam(use_ema=True), {"optimizer": "row_wise"})
told("decayed", optimizers.SGD(weight_decay=0.1), {"optimizer": "row_wise"})
told("norm of all", optimizers.Adam(global_clipnorm=1.0), {"optimizer": "row_wise"})
"""


@pytest.fixture(scope="module")
def models() -> dict[str, dict[str, Any]]:
    return told_by(MODELS)


@pytest.mark.parametrize(
    "name",
    [
        "averaged",
        "decayed",
        "norm of all",
    ],
)
def test_a_trial_leaves_nothing_that_passes_over_the_table(
    models: dict[str, dict[str, Any]], name: str
) -> None:
    model = models[name]

    assert model["failed"] == []
    assert model["before"]["whole"] or model["before"]["operations"]
    assert model["during"] == {"gradient": "sparse", "whole": False, "operations": []}
    assert model["after"] == model["before"]
    assert model["own"]


def test_a_checkpoint_of_the_model_holds_its_own_optimizer_again(
    models: dict[str, dict[str, Any]],
) -> None:
    saved = models["averaged"]["saved"]

    assert any("optimizer" in one for one in saved)
    assert models["averaged"]["saved after"] == saved
