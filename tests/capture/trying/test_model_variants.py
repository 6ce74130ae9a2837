"""A model compiled otherwise and back: classes of the same shape, and real ones of Keras 3."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from pipediag.capture.replay import NotReplayableError
from pipediag.capture.trying.model_variants import ModelVariants
from tests.capture.captured import told_by
from tests.capture.instruments import PreemptedError, handles_signals, signal_arrives


class Trainer:
    """Keras' trainer on TensorFlow."""

    def __init__(self) -> None:
        self.jit_compile: Any = "auto"
        self.run_eagerly = False
        self.steps_per_execution = 1
        self.layers: list[Any] = []
        self.made = 0
        self.fails: BaseException | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        self.train_function: Any = lambda iterator: f"own step on {iterator}"

    def make_train_function(self, force: bool = False) -> None:
        """Keras keeps the function that it has, unless it is forced to make another one."""
        if not force:
            return
        self.made += 1
        number = self.made

        def train(iterator: Any) -> str:
            self.meanwhile()
            if self.fails is not None:
                raise self.fails
            return f"step of variant {number} on {iterator}"

        self.train_function = train


Trainer.__module__ = "keras.src.backend.tensorflow.trainer"


class Model(Trainer):
    """The user's."""


@pytest.fixture
def supports_xla(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """What Keras says of the model's layers."""
    says = {"jit": True}
    for name in ("keras", "keras.src", "keras.src.trainers", "keras.src.trainers.trainer"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    trainer: Any = sys.modules["keras.src.trainers.trainer"]
    trainer.model_supports_jit = lambda _: says["jit"]
    return says


def variants_of(model: Any) -> tuple[ModelVariants, list[BaseException]]:
    failed: list[BaseException] = []
    return ModelVariants(model, failed.append), failed


def test_what_can_not_be_set_is_refused_with_the_reason() -> None:
    variants, _ = variants_of(Model())
    variants.check({"steps_per_execution": 8, "dtype_policy": "mixed_bfloat16", "anew": True})
    with pytest.raises(NotReplayableError, match="loss or metrics is not tried"):
        variants.check({"metrics": "mae", "loss": "mse"})
    for other in (None, object()):
        variants, _ = variants_of(other)
        variants.check({})
        variants.use({})
        with pytest.raises(NotReplayableError, match="Keras `fit` on TensorFlow"):
            variants.check({"steps_per_execution": 8})


def test_a_layer_without_xla_is_not_compiled_with_it(supports_xla: dict[str, bool]) -> None:
    variants, _ = variants_of(Model())
    variants.check({"jit_compile": True})
    supports_xla["jit"] = False
    variants.check({"jit_compile": False})
    with pytest.raises(NotReplayableError, match="XLA"):
        variants.check({"jit_compile": True})


def test_a_variant_is_made_once_and_the_users_own_function_comes_back() -> None:
    model = Model()
    own = model.train_function
    variants, _ = variants_of(model)
    variants.use({"steps_per_execution": 8})
    assert (model.steps_per_execution, model.train_function("it")) == (8, "step of variant 1 on it")
    variants.use({})
    assert (model.steps_per_execution, model.train_function) == (1, own)
    variants.use({"steps_per_execution": 8})

    assert model.train_function("it") == "step of variant 1 on it"
    assert model.made == 1


def test_what_could_not_be_made_leaves_none_of_its_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Model()
    own = model.train_function
    variants, _ = variants_of(model)

    def unmade(force: bool = False) -> None:
        raise NotReplayableError("No step was made.")

    monkeypatch.setattr(model, "make_train_function", unmade)
    with pytest.raises(NotReplayableError, match="No step was made"):
        variants.use({"jit_compile": False})
    assert (model.jit_compile, model.train_function) == ("auto", own)


def test_a_step_that_fails_is_told_and_made_as_the_user_compiled_it() -> None:
    model = Model()
    variants, failed = variants_of(model)
    variants.use({"jit_compile": True})
    model.fails = ValueError("no kernel")

    assert model.train_function("it") == "own step on it"
    assert failed == [model.fails]
    assert model.jit_compile == "auto"
    assert model.train_function("it") == "own step on it"


@pytest.mark.parametrize("ends", [StopIteration, PreemptedError])
def test_the_end_of_an_epoch_and_a_signal_are_no_failures(ends: type[BaseException]) -> None:
    model = Model()
    variants, failed = variants_of(model)
    variants.use({"jit_compile": True})
    if ends is StopIteration:
        model.fails = StopIteration()
    else:
        model.meanwhile = signal_arrives
    with handles_signals(), pytest.raises(ends):
        model.train_function("it")

    assert (failed, model.jit_compile) == ([], True)


KERAS_2 = ["keras.src.engine.training", "tf_keras.src.engine.training"]


class Variable:
    """TensorFlow's."""

    def __init__(self, value: int) -> None:
        self._value = value

    def assign(self, value: int) -> None:
        self._value = value

    def __int__(self) -> int:
        return self._value


class Keras2Model:
    """That of Keras 2.14, which has no property for its steps."""

    def __init__(self) -> None:
        self._jit_compile = None
        self._run_eagerly = None
        self._steps_per_execution = Variable(1)
        self.train_function: Any = lambda iterator: f"own step on {iterator}"
        self.train_tf_function: Any = "own graph"

    @property
    def jit_compile(self) -> Any:
        return self._jit_compile

    @jit_compile.setter
    def jit_compile(self, value: Any) -> None:
        raise AssertionError("Keras 2 would drop what the script has compiled")

    def make_train_function(self, force: bool = False) -> Any:
        assert force
        compiled = f"xla {self._jit_compile} eager {self._run_eagerly}"
        self.train_tf_function = f"graph of {compiled}"

        def train(iterator: Any) -> str:
            return f"{int(self._steps_per_execution)} steps, {compiled}, on {iterator}"

        self.train_function = train
        return train


@pytest.fixture(params=KERAS_2)
def keras_2(request: pytest.FixtureRequest) -> Any:
    return type("Model", (type("Model", (Keras2Model,), {"__module__": request.param}),), {})()


def fails(error: BaseException) -> None:
    raise AssertionError from error


def test_a_model_of_keras_2_is_tried_otherwise_and_back_again(keras_2: Any) -> None:
    variants, own = ModelVariants(keras_2, fails), keras_2.train_function
    several = {"steps_per_execution": 8}
    variants.check(several)
    for other in ({"optimizer": "sgd", "jit_compile": True}, {"dtype_policy": "mixed_bfloat16"}):
        with pytest.raises(NotReplayableError, match="not tried with this version of Keras"):
            variants.check(other)

    variants.use(several)
    assert keras_2.train_function("it") == "8 steps, xla None eager None, on it"
    variants.use({"jit_compile": True})
    assert keras_2.train_function("it") == "1 steps, xla True eager None, on it"
    variants.use({"run_eagerly": False})
    assert keras_2.train_function("it") == "1 steps, xla None eager False, on it"
    variants.use(several)
    assert keras_2.train_function("it") == "8 steps, xla None eager None, on it"
    variants.use({})

    assert (keras_2.train_function, int(keras_2._steps_per_execution)) == (own, 1)
    assert (keras_2._jit_compile, keras_2._run_eagerly) == (None, None)
    assert keras_2.train_tf_function == "own graph"


MODELS = """
import json
import tempfile
import keras
import numpy as np
import tensorflow as tf
from contextlib import ExitStack
from pipediag.capture.frameworks.tensorflow.tables.traced_step import TracedTables
from pipediag.capture.trying.model_variants import (
    ModelVariants, input_layers, inseparable, use_policy)

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
    variants = ModelVariants(model, failed.append)
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
told("averaged, fused", optimizers.Adam(use_ema=True), {"optimizer": "fused"})
told("decayed", optimizers.SGD(weight_decay=0.1), {"optimizer": "row_wise"})
told("norm of all", optimizers.Adam(global_clipnorm=1.0), {"optimizer": "row_wise"})

ids = keras.Input((4,), dtype="int32")
hidden = layers.LSTM(4)(layers.Embedding(9, 8)(ids))
hidden = layers.Dense(4, dtype="float64", name="chosen")(hidden)
model = keras.Model(ids, layers.Dense(1, name="result")(hidden))
simple = keras.Sequential([layers.Dense(2, name="a"), layers.Dense(1, name="b")])
for name, one in [("plain", model), ("not built", simple)]:
    found = []
    with ExitStack() as undo:
        use_policy(one, "mixed_bfloat16", undo)
        found.append([layer.compute_dtype for layer in one.layers[-4:]])
    found.append([layer.compute_dtype for layer in one.layers[-4:]])
    print(json.dumps({"name": name, "formats": found}))

text = keras.Input((), dtype="string", name="text")
day = keras.Input((1,), dtype="string", name="day")
price = keras.Input((2,), name="price")
words = layers.TextVectorization(vocabulary=["a", "b", "c"], output_sequence_length=4, name="words")
days = layers.StringLookup(vocabulary=["mon", "tue"], name="days")
as_vector = layers.CategoryEncoding(num_tokens=4, output_mode="multi_hot", name="vector")
embedded = layers.GlobalAveragePooling1D()(layers.Embedding(6, 8)(words(text)))
joined = layers.Concatenate()([embedded, as_vector(days(day)), price])
result = layers.Dense(1, name="result")(layers.BatchNormalization()(joined))
model = keras.Model({"text": text, "day": day, "price": price}, result)
class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.words = words
class Trains(keras.Model):
    pass
with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
    distributed = keras.Model(model.inputs, result)
known = [model, Own(), Trains(model.inputs, result), distributed]
print(json.dumps({
    "name": "prepare inputs",
    "layers": [[one.name, one.kind, one.behind_input, one.handed_on]
               for one in input_layers(model)],
    "own": [[one.name, one.behind_input] for one in input_layers(known[1])],
    "inseparable": [inseparable(one) for one in known],
}))
"""


@pytest.fixture(scope="module")
def models() -> dict[str, dict[str, Any]]:
    return told_by(MODELS)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["averaged", "decayed", "norm of all"])
def test_a_trial_leaves_nothing_that_passes_over_the_table(
    models: dict[str, dict[str, Any]], name: str
) -> None:
    model = models[name]

    assert model["failed"] == []
    assert model["before"]["whole"] or model["before"]["operations"]
    assert model["during"] == {"gradient": "sparse", "whole": False, "operations": []}
    assert model["after"] == model["before"]
    assert model["own"]


@pytest.mark.tensorflow
def test_a_trial_with_one_pass_over_the_table_leaves_the_models_own_optimizer(
    models: dict[str, dict[str, Any]],
) -> None:
    model = models["averaged, fused"]
    assert (model["failed"], model["own"]) == ([], True)
    assert model["after"] == model["before"] != model["during"]


@pytest.mark.tensorflow
def test_a_checkpoint_of_the_model_holds_its_own_optimizer_again(
    models: dict[str, dict[str, Any]],
) -> None:
    saved = models["averaged"]["saved"]

    assert any("optimizer" in one for one in saved)
    assert models["averaged"]["saved after"] == saved


@pytest.mark.tensorflow
def test_only_layers_that_nobody_set_compute_in_another_format(
    models: dict[str, dict[str, Any]],
) -> None:
    # An embedding, an LSTM, a layer whose policy the user chose, and the result.
    during, after = models["plain"]["formats"]
    assert during == ["bfloat16", "bfloat16", "float64", "float32"]
    assert after == ["float32", "float32", "float64", "float32"]
    assert models["not built"]["formats"] == [["bfloat16", "float32"], ["float32", "float32"]]


@pytest.mark.tensorflow
def test_layers_that_prepare_inputs_are_found(models: dict[str, dict[str, Any]]) -> None:
    """Models of own classes and under a strategy are no sum of layers."""
    assert models["prepare inputs"] == {
        "layers": [
            ["words", "TextVectorization", True, True],
            ["days", "StringLookup", True, False],
            ["vector", "CategoryEncoding", True, True],
        ],
        "own": [["words", False]],
        "inseparable": [False, True, True, True],
    }
