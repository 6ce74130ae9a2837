"""A model compiled otherwise and back, with Keras played by classes of the same shape."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from pipediag.capture.frameworks.keras import compiled as module
from pipediag.capture.frameworks.keras.compiled import CompiledVariants
from pipediag.capture.replay import NotReplayableError
from tests.capture.preempted import PreemptedError, handles_signals, signal_arrives


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


class Policies:
    """The layers' number format."""

    used: list[str | None]

    def __init__(self, _: Any) -> None:
        Policies.used = []

    def use(self, policy: str | None) -> None:
        Policies.used.append(policy)


@pytest.fixture(autouse=True)
def _policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LayerPolicies", Policies)


@pytest.fixture
def supports_xla(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """What Keras says of the model's layers."""
    says = {"jit": True}
    for name in ("keras", "keras.src", "keras.src.trainers", "keras.src.trainers.trainer"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    trainer: Any = sys.modules["keras.src.trainers.trainer"]
    trainer.model_supports_jit = lambda _: says["jit"]
    return says


def variants_of(model: Any) -> tuple[CompiledVariants, list[BaseException]]:
    failed: list[BaseException] = []
    return CompiledVariants(model, failed.append), failed


@pytest.mark.parametrize("model", [None, object()])
def test_what_is_no_keras_model_on_tensorflow_stays_as_it_is(model: Any) -> None:
    variants, _ = variants_of(model)
    variants.check({})
    variants.use({})
    with pytest.raises(NotReplayableError, match="Keras `fit` on TensorFlow"):
        variants.check({"run_eagerly": False})


def test_only_what_is_known_can_be_set() -> None:
    variants, _ = variants_of(Model())
    variants.check({"steps_per_execution": 8, "dtype_policy": "mixed_bfloat16"})
    with pytest.raises(NotReplayableError, match="no row-wise optimizer in place of"):
        variants.check({"optimizer": "row_wise"})
    with pytest.raises(NotReplayableError, match="other loss, metrics"):
        variants.check({"metrics": "mae", "loss": "mse"})
    with pytest.raises(NotReplayableError, match="trained with lion"):
        variants.check({"optimizer": "lion"})


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


def test_each_choice_of_settings_is_a_variant_of_its_own() -> None:
    model = Model()
    variants, _ = variants_of(model)
    variants.use({"jit_compile": True})
    variants.use({"run_eagerly": True})

    assert (model.jit_compile, model.run_eagerly) == ("auto", True)
    assert model.train_function("it") == "step of variant 2 on it"


def test_what_is_set_already_is_not_set_again() -> None:
    model = Model()
    variants, _ = variants_of(model)
    variants.use({})
    variants.use({"run_eagerly": False})

    assert (model.made, Policies.used) == (0, [])


def test_layers_compute_in_another_format_only_where_that_is_asked_for() -> None:
    variants, _ = variants_of(Model())
    variants.use({"dtype_policy": "mixed_bfloat16"})
    variants.use({"jit_compile": True})
    variants.use({})

    assert Policies.used == ["mixed_bfloat16", None, None]


@pytest.mark.parametrize("name", ["table_terms_left_out", "sampled_softmax"])
def test_changes_of_what_the_model_computes_are_left_to_the_user(name: str) -> None:
    variants, _ = variants_of(Model())
    with pytest.raises(NotReplayableError, match="not tried in the running loop"):
        variants.check({name: 1})


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


def test_what_a_signal_handler_raises_in_a_step_is_no_failure() -> None:
    model = Model()
    variants, failed = variants_of(model)
    variants.use({"jit_compile": True})
    model.meanwhile = signal_arrives
    with handles_signals(), pytest.raises(PreemptedError):
        model.train_function("it")

    assert failed == []


def test_an_epoch_that_ends_is_no_failure() -> None:
    model = Model()
    variants, failed = variants_of(model)
    variants.use({"jit_compile": True})
    model.fails = StopIteration()
    with pytest.raises(StopIteration):
        model.train_function("it")

    assert (failed, model.jit_compile) == ([], True)


def test_steps_per_execution_are_batches_of_a_step() -> None:
    variants, _ = variants_of(Model())

    assert variants.batches_per_step({"steps_per_execution": 8}, own=2) == 8
    assert variants.batches_per_step({"jit_compile": True}, own=2) == 2


def test_the_step_as_it_is_can_be_made_once_more() -> None:
    model = Model()
    variants, _ = variants_of(model)
    variants.check({"anew": True})
    variants.use({"anew": True})
    assert model.train_function("batch") == "step of variant 1 on batch"
    assert (model.jit_compile, model.run_eagerly, model.steps_per_execution) == ("auto", False, 1)
    variants.use({})
    assert model.train_function("batch") == "own step on batch"
