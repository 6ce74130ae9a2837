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


class Terms:
    """Regularisers of its embeddings."""

    used: list[bool]
    there = True

    def __init__(self, _: Any) -> None:
        Terms.used = []

    def check(self) -> None:
        if not Terms.there:
            raise NotReplayableError("No embedding has a regulariser or a constraint.")

    def leave_out(self, wanted: bool) -> None:
        Terms.used.append(wanted)


class Ids:
    """How its embeddings look rows up."""

    used: list[bool]
    there = True

    def __init__(self, _: Any) -> None:
        Ids.used = []

    def check(self) -> None:
        if not Ids.there:
            raise NotReplayableError("The model has no embedding that can be looked up otherwise.")

    def use(self, wanted: bool) -> None:
        Ids.used.append(wanted)


class Sampled:
    """Its softmax over a vocabulary."""

    made: list[int]
    there = True

    def __init__(self, _: Any) -> None:
        Sampled.made = []

    def check(self, _: int) -> None:
        if not Sampled.there:
            raise NotReplayableError("The model ends in no `Dense` of all classes.")

    def train_function(self, drawn: int) -> Callable[[Any], Any]:
        if drawn == UNMADE:
            raise NotReplayableError("No step was made.")
        Sampled.made.append(drawn)
        return lambda iterator: f"{drawn} drawn for {iterator}"


UNMADE = 13


@pytest.fixture(autouse=True)
def _policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LayerPolicies", Policies)
    monkeypatch.setattr(module, "TableTerms", Terms)
    monkeypatch.setattr(module, "UniqueIds", Ids)
    monkeypatch.setattr(module, "SampledSoftmax", Sampled)


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
    with pytest.raises(NotReplayableError, match="no embedding of Keras'"):
        variants.check({"optimizer": "sgd_for_tables"})


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


def test_regularisers_are_left_out_only_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variants, _ = variants_of(Model())
    variants.check({"table_terms_left_out": True})
    variants.use({"table_terms_left_out": True})
    variants.use({})
    assert Terms.used == [True, False]

    monkeypatch.setattr(Terms, "there", False)
    with pytest.raises(NotReplayableError, match="No embedding has a regulariser"):
        variants.check({"table_terms_left_out": True})


def test_rows_are_looked_up_by_different_ids_only_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variants, _ = variants_of(Model())
    variants.check({"unique_ids": True})
    variants.use({"unique_ids": True})
    variants.use({})
    assert Ids.used == [True, False]

    monkeypatch.setattr(Ids, "there", False)
    with pytest.raises(NotReplayableError, match="no embedding that can be looked up"):
        variants.check({"unique_ids": True})


def test_classes_are_drawn_only_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    own = model.train_function
    variants, _ = variants_of(model)
    variants.check({"sampled_softmax": 64})
    variants.use({"sampled_softmax": 64})
    assert model.train_function("it") == "64 drawn for it"
    variants.use({})
    assert (model.train_function, Sampled.made, model.made) == (own, [64], 0)

    monkeypatch.setattr(Sampled, "there", False)
    with pytest.raises(NotReplayableError, match="ends in no `Dense`"):
        variants.check({"sampled_softmax": 64})


def test_what_could_not_be_made_leaves_none_of_its_settings() -> None:
    model = Model()
    own = model.train_function
    variants, _ = variants_of(model)
    variants.use({"table_terms_left_out": True})
    with pytest.raises(NotReplayableError, match="No step was made"):
        variants.use({"sampled_softmax": UNMADE, "jit_compile": False})
    assert (model.jit_compile, model.train_function, Terms.used[-1]) == ("auto", own, False)
    variants.use({"table_terms_left_out": True})
    assert Terms.used[-1]


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
