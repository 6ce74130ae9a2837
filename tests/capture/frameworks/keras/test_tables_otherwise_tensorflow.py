"""A real Keras model trained otherwise than its script asked for: what passes over its table."""

from __future__ import annotations

from typing import Any

import numpy as np
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
from pipediag.capture.frameworks.tensorflow.tables.reading import TracedTables

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

alone = {"table_terms_left_out": True}
both = {**alone, "optimizer": "row_wise"}
told("regulariser", optimizers.SGD(), alone, embeddings_regularizer="l2")
told("constraint", optimizers.SGD(), alone, embeddings_constraint="max_norm")
told("regulariser under adam", optimizers.Adam(), both, embeddings_regularizer="l2")
told("averaged", optimizers.Adam(use_ema=True), {"optimizer": "row_wise"})
told("decayed", optimizers.SGD(weight_decay=0.1), {"optimizer": "row_wise"})
told("norm of all", optimizers.Adam(global_clipnorm=1.0), {"optimizer": "row_wise"})
by_sgd = {"optimizer": "sgd_for_tables"}
told("sgd beside adam", optimizers.Adam(), by_sgd)
told("sgd outside of a norm", optimizers.AdamW(global_clipnorm=1.0), by_sgd)
told("sgd beside ftrl", optimizers.Ftrl(), by_sgd)

# A trained step by different ids ends at the same weights as one by all of them.
def trained(settings, **options):
    keras.utils.set_random_seed(5)
    ids = keras.Input((5,), dtype="int32")
    vectors = layers.Embedding(50, 3, mask_zero=True, **options)(ids)
    model = keras.Model(ids, layers.Dense(1)(layers.GlobalAveragePooling1D()(vectors)))
    model.compile(optimizers.SGD(0.5), "mse")
    model.make_train_function()
    failed = []
    variants = CompiledVariants(model, failed.append)
    variants.check(settings)
    variants.use(settings)
    drawn = np.random.default_rng(1).integers(0, 4, (8, 5), "int32")
    batches = iter(tf.data.Dataset.from_tensors((drawn, np.ones((8, 1), "float32"))).repeat())
    for _ in range(3):
        model.train_function(batches)
    traced = [one for one in functions_of(model) if one._list_all_concrete_functions()]
    types = {op.type for one in traced for op in all_operations(one)}
    variants.use({})
    (layer,) = [one for one in model.layers if isinstance(one, layers.Embedding)]
    return {"weights": [one.tolist() for one in model.get_weights()], "failed": len(failed),
        "unique": "Unique" in types, "own call": "call" not in vars(layer),
        "weights of layer": len(layer.weights)}

def all_operations(function):
    from pipediag.capture.frameworks.tensorflow.tables.unfolded import of_function
    concrete = function._list_all_concrete_functions()[-1]
    return [op for _, op in of_function(concrete).operations]

print(json.dumps({"name": "all ids", **trained({})}))
print(json.dumps({"name": "different ids", **trained({"unique_ids": True})}))
"""


@pytest.fixture(scope="module")
def models() -> dict[str, dict[str, Any]]:
    return told_by(MODELS)


@pytest.mark.parametrize(
    "name",
    [
        "regulariser",
        "constraint",
        "regulariser under adam",
        "averaged",
        "decayed",
        "norm of all",
        "sgd beside adam",
        "sgd outside of a norm",
        "sgd beside ftrl",
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


@pytest.mark.parametrize("name", ["averaged", "sgd beside adam"])
def test_a_checkpoint_of_the_model_holds_its_own_optimizer_again(
    models: dict[str, dict[str, Any]], name: str
) -> None:
    saved = models[name]["saved"]

    assert any("optimizer" in one for one in saved)
    assert models[name]["saved after"] == saved


def test_a_step_by_different_ids_trains_as_one_by_all(models: dict[str, dict[str, Any]]) -> None:
    every, different = models["all ids"], models["different ids"]

    assert (every["unique"], different["unique"]) == (False, True)
    assert (different["failed"], different["own call"], different["weights of layer"]) == (0, 1, 1)
    for ours, theirs in zip(different["weights"], every["weights"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
