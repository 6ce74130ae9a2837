"""A real Keras model trained with drawn classes in the place of all, and as it was afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.frameworks.programs import told_by

pytestmark = pytest.mark.tensorflow

MODELS = """
import json
import keras
import numpy as np
import tensorflow as tf
from keras.src.backend.common import global_state
from pipediag.capture.frameworks.keras.compiled import CompiledVariants
from pipediag.capture.frameworks.tensorflow.tables.reading import TracedTables
from pipediag.capture.frameworks.tensorflow.tables.unfolded import of_function
from pipediag.capture.replay import NotReplayableError

layers, losses, optimizers = keras.layers, keras.losses, keras.optimizers
CLASSES, DRAWN = 300, 40
ids = np.random.default_rng(4).integers(0, CLASSES, (32, 5)).astype("int32")
ids[:, 1:] = ids[:, :1]
LOGITS = losses.SparseCategoricalCrossentropy(from_logits=True)

def built(*last, loss=LOGITS, optimizer="sgd", per_word=False, **options):
    keras.utils.set_random_seed(3)
    body = [keras.Input((5,), dtype="int32"), layers.Embedding(CLASSES, 6, mask_zero=per_word)]
    body += [] if per_word else [layers.GlobalAveragePooling1D()]
    model = keras.Sequential([*body, *(last or (layers.Dense(CLASSES, name="words"),))])
    model.compile(optimizer, loss, **options)
    return model

def batches(labels, *weights):
    return iter(tf.data.Dataset.from_tensors((ids, labels, *weights)).repeat())

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
    return [one for one in found if one._list_all_concrete_functions()]

def types_of(model):
    steps = [one._list_all_concrete_functions()[-1] for one in functions_of(model)]
    return {op.type for one in steps for _, op in of_function(one).operations}

def state(model):
    values = [one.numpy() for one in (*model.variables, *model.optimizer.variables)]
    dense = model.layers[-1]
    return {"values": [one.tolist() for one in values],
        "names": {**(global_state.get_global_attribute("object_name_uids") or {})},
        "places": [len(one._inbound_nodes) + len(one._outbound_nodes) for one in model.layers],
        "attributes": sorted(vars(model)), "of_layer": sorted(vars(dense))}

def trained(name, model, labels, *weights, steps=1):
    data = batches(labels, *weights)
    model.make_train_function()
    model.train_function(data)
    before = state(model)
    failed = []
    variants = CompiledVariants(model, failed.append)
    settings = {"sampled_softmax": DRAWN}
    variants.check(settings)
    variants.use(settings)
    after_made = state(model)
    logs = [model.train_function(data) for _ in range(steps)]
    softmaxes = len(TracedTables(functions_of(model)).softmaxes)
    types, use = types_of(model), TracedTables(functions_of(model)).tables[0].use
    variants.use({})
    model.train_function(data)
    print(json.dumps({"name": name, "failed": [str(one) for one in failed],
        "softmaxes": [softmaxes, len(TracedTables(functions_of(model)).softmaxes)],
        "draws": "LogUniformCandidateSampler" in types,
        "all classes": "SparseSoftmaxCrossEntropyWithLogits" in types,
        "writes_whole": use.writes_whole, "untouched": before == after_made,
        "logs": [sorted(logs[0]), float(logs[0]["loss"]), float(logs[-1]["loss"])]}, default=str))

labels = ids[:, 0]
trained("logits", built(metrics=["accuracy"]), labels, steps=300)
trained("probabilities", built(layers.Dense(CLASSES, "softmax"),
    loss="sparse_categorical_crossentropy"), labels)
trained("own activation", built(layers.Dense(CLASSES), layers.Activation("softmax"),
    loss=losses.sparse_categorical_crossentropy), labels[:, None])
trained("one-hot", built(layers.Dense(CLASSES, use_bias=False),
    loss=losses.CategoricalCrossentropy(from_logits=True), optimizer="adam"),
    np.eye(CLASSES, dtype="float32")[labels])
trained("weighted", built(), labels, np.zeros(32, "float32"))
trained("each word", built(per_word=True), ids)
keras.mixed_precision.set_global_policy("mixed_float16")
trained("sixteen bits", built(), labels)
keras.mixed_precision.set_global_policy("float32")

def why_not(name, model):
    try:
        CompiledVariants(model, print).check({"sampled_softmax": DRAWN})
        print(json.dumps({"name": name, "why": None}))
    except NotReplayableError as error:
        print(json.dumps({"name": name, "why": str(error)}))

class Own(keras.Model):
    pass

class OwnOptimizer(optimizers.SGD):
    pass

inputs = keras.Input((5,), dtype="int32")
pooled = layers.GlobalAveragePooling1D()(layers.Embedding(CLASSES, 6)(inputs))
own = Own(inputs, layers.Dense(CLASSES)(pooled))
own.compile("sgd", LOGITS)
two = keras.Model(inputs, [layers.Dense(CLASSES)(pooled), layers.Dense(CLASSES)(pooled)])
two.compile("sgd", LOGITS)
square = layers.Dense(6)
twice = keras.Model(inputs, square(square(pooled)))
twice.compile("sgd", LOGITS)
stepping = built()
stepping.train_step = lambda data: {}
frozen = layers.Dense(CLASSES, trainable=False)
smooth = losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
for name, model in {
    "a model of its own": own,
    "two outputs": two,
    "a layer called twice": twice,
    "a step of its own": stepping,
    "another loss": built(loss="mse"),
    "smoothed": built(loss=smooth),
    "a class ignored": built(loss=losses.SparseCategoricalCrossentropy(True, ignore_class=0)),
    "a loss by name": built(loss={"words": LOGITS}),
    "weighted losses": built(loss_weights=[0.5]),
    "wrong logits": built(loss="sparse_categorical_crossentropy"),
    "frozen": built(frozen),
    "regularised": built(layers.Dense(CLASSES, kernel_regularizer="l2")),
    "another activation": built(layers.Dense(CLASSES, "relu")),
    "another layer": built(layers.Dense(CLASSES), layers.BatchNormalization()),
    "too few classes": built(layers.Dense(DRAWN)),
    "an optimizer of its own": built(optimizer=OwnOptimizer()),
}.items():
    why_not(name, model)
"""


@pytest.fixture(scope="module")
def models() -> dict[str, dict[str, Any]]:
    return told_by(MODELS)


@pytest.mark.parametrize(
    "name",
    [
        "logits",
        "probabilities",
        "own activation",
        "one-hot",
        "weighted",
        "each word",
        "sixteen bits",
    ],
)
def test_a_trial_draws_classes_and_leaves_the_model_as_it_was(
    models: dict[str, dict[str, Any]], name: str
) -> None:
    model = models[name]

    assert model["failed"] == []
    assert (model["draws"], model["all classes"]) == (True, False)
    assert model["softmaxes"] == [0, 1]
    assert model["untouched"]


def test_it_learns_and_its_rows_alone_are_updated(models: dict[str, dict[str, Any]]) -> None:
    names, first, last = models["logits"]["logs"]

    assert not models["logits"]["writes_whole"]
    assert last < first - 0.1
    # What callbacks look for is there.
    assert names == ["accuracy", "loss"]


def test_examples_without_a_weight_cost_nothing(models: dict[str, dict[str, Any]]) -> None:
    """The loss that is told is the mean of all steps, the first of them with all classes."""
    assert models["weighted"]["logs"][1] == 0.0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a model of its own", "`Own` is a class of its own"),
        ("two outputs", "more than one tensor"),
        ("a layer called twice", "calls its last layer, `dense"),
        ("a step of its own", "`train_step` of its own"),
        ("another loss", "The loss is `mean_squared_error`"),
        ("smoothed", "smooths labels"),
        ("a class ignored", "ignores a class"),
        ("a loss by name", "by their names"),
        ("weighted losses", "`loss_weights`"),
        ("wrong logits", "takes probabilities and the model gives logits"),
        ("frozen", "is not trained"),
        ("regularised", "has a kernel_regularizer"),
        ("another activation", "computes `relu`"),
        ("another layer", "ends in `batch_normalization"),
        ("too few classes", "Of 40 classes, 40 can't be drawn"),
        ("an optimizer of its own", "`OwnOptimizer` is an optimizer of the script's own"),
    ],
)
def test_what_is_not_tried_says_why(
    models: dict[str, dict[str, Any]], name: str, reason: str
) -> None:
    assert reason in (models[name]["why"] or "")
