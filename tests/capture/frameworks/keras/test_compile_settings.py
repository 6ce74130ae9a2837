"""How models of Keras 2 and 3 are compiled, with Keras played by classes of the same shape."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.capture.frameworks.keras import compiled
from pipediag.capture.frameworks.keras.compile_settings import compile_settings_of
from pipediag.capture.frameworks.keras.compiled import CompiledVariants
from pipediag.capture.replay import NotReplayableError

KERAS_2 = ["keras.src.engine.training", "tf_keras.src.engine.training"]


class Variable:
    """TensorFlow's."""

    def __init__(self, value: int) -> None:
        self._value = value

    def assign(self, value: int) -> None:
        self._value = value

    def __int__(self) -> int:
        return self._value


class Model:
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


class Policies:
    """The layers' number format."""

    made: list[Policies]

    def __init__(self, _: Any, package: str) -> None:
        self.package = package
        self.used: list[str | None] = []
        Policies.made.append(self)

    def use(self, policy: str | None) -> None:
        self.used.append(policy)


@pytest.fixture(autouse=True)
def _policies(monkeypatch: pytest.MonkeyPatch) -> None:
    Policies.made = []
    monkeypatch.setattr(compiled, "Keras2LayerPolicies", Policies)


@pytest.fixture(params=KERAS_2)
def model(request: pytest.FixtureRequest) -> Any:
    return type("Model", (type("Model", (Model,), {"__module__": request.param}),), {})()


def fails(error: BaseException) -> None:
    raise AssertionError from error


def test_a_model_of_keras_2_is_tried_otherwise_and_back_again(model: Any) -> None:
    variants, own = CompiledVariants(model, fails), model.train_function
    several = {"steps_per_execution": 8}
    variants.check(several)

    variants.use(several)
    assert model.train_function("it") == "8 steps, xla None eager None, on it"
    assert variants.batches_per_step(several, 1) == 8
    variants.use({"jit_compile": True})
    assert model.train_function("it") == "1 steps, xla True eager None, on it"
    variants.use({"run_eagerly": False})
    assert model.train_function("it") == "1 steps, xla None eager False, on it"
    variants.use(several)
    assert model.train_function("it") == "8 steps, xla None eager None, on it"
    variants.use({})

    assert (model.train_function, int(model._steps_per_execution)) == (own, 1)
    assert (model._jit_compile, model._run_eagerly) == (None, None)
    assert model.train_tf_function == "own graph"


def test_what_is_tried_in_keras_3_only_is_refused_with_that_reason(model: Any) -> None:
    with pytest.raises(NotReplayableError, match="Keras 3 only"):
        CompiledVariants(model, fails).check({"optimizer": "sgd", "jit_compile": True})


def test_layers_of_keras_2_compute_in_another_format_and_back_again(model: Any) -> None:
    variants, own = CompiledVariants(model, fails), model.train_function
    short = {"dtype_policy": "mixed_bfloat16"}
    variants.check(short)

    variants.use(short)
    assert model.train_function is not own
    variants.use({"jit_compile": True})
    variants.use({})

    [policies] = Policies.made
    assert policies.package in ("keras", "tf_keras")
    assert policies.used == ["mixed_bfloat16", None, None]
    assert model.train_function is own


def test_what_another_backend_trains_has_no_such_settings() -> None:
    other = type("JAXTrainer", (Model,), {"__module__": "keras.src.backend.jax.trainer"})
    assert compile_settings_of(other()) is None
    assert compile_settings_of(None) is None
