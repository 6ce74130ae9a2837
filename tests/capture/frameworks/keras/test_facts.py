"""Keras is played by code that is compiled under the names of its files."""

from __future__ import annotations

import sys
from functools import partial
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipediag.capture.callsites import frames
from pipediag.capture.frameworks.keras.facts import (
    batch_size_of,
    describe_fit,
    fed_model,
    passes_a_batch_on,
    phase_of,
    planned_steps,
)

KERAS = "/lib/site-packages/keras/src/trainer.py"
LEGACY = "/lib/site-packages/tf_keras/src/engine/training.py"
USERS = "/home/me/train.py"


def method(name: str, filename: str = KERAS) -> Any:
    """A function that calls what it is given, in a file of that name."""
    names: dict[str, Any] = {}
    exec(compile(f"def {name}(inner):\n    return inner()\n", filename, "exec"), names)
    return names[name]


def seen() -> tuple[str, str] | None:
    phase = phase_of(frames())
    return (phase.role, phase.method) if phase is not None else None


@pytest.mark.parametrize("filename", [KERAS, LEGACY])
@pytest.mark.parametrize(
    ("name", "role"),
    [("fit", "training"), ("evaluate", "evaluate"), ("predict", "predict"), ("adapt", "adapt")],
)
def test_phases(name: str, role: str, filename: str) -> None:
    assert method(name, filename)(seen) == (role, name)


def test_evaluate_inside_fit_is_validation() -> None:
    assert method("fit")(lambda: method("evaluate")(seen)) == ("validation", "evaluate inside fit")


def test_predict_inside_fit_is_predict() -> None:
    assert method("fit")(lambda: method("predict")(seen)) == ("predict", "predict")


def test_methods_of_others_are_none() -> None:
    assert method("fit", USERS)(seen) is None
    assert method("call")(seen) is None
    assert seen() is None


def made(*inward: Any) -> bool:
    """What is said of an iterator that the innermost of these makes."""
    asked: Any = partial(passes_a_batch_on, frames())
    for outer in reversed(inward):
        asked = partial(outer, asked)
    return bool(asked())


def test_an_iterator_of_one_batch_is_made_for_it_by_keras_2_alone() -> None:
    tensorflow = method("__iter__", "/lib/site-packages/tensorflow/python/data/ops/dataset_ops.py")
    one_batch = method("single_batch_iterator", LEGACY)
    assert made(method("train_on_batch", LEGACY), one_batch, tensorflow)
    assert not made(method("fit", LEGACY), tensorflow)
    assert not made(one_batch, method("loads", USERS), tensorflow)
    assert not made(method("single_batch_iterator", USERS), tensorflow)
    assert not made()


@pytest.mark.parametrize("filename", [KERAS, LEGACY])
def test_the_model_that_is_trained_on_a_batch_of_the_scripts(filename: str) -> None:
    names: dict[str, Any] = {}
    source = "def train_on_batch(self, inner):\n    return inner()\n"
    exec(compile(source, filename, "exec"), names)
    users_step = method("train_step", USERS)

    assert names["train_on_batch"]("model", lambda: fed_model(frames())) == "model"
    assert names["train_on_batch"]("model", lambda: users_step(lambda: fed_model(frames())))
    assert method("train_on_batch", USERS)(lambda: fed_model(frames())) is None
    assert method("fit", filename)(lambda: fed_model(frames())) is None


class Counting:
    """Stands for a callback of the user."""

    def on_train_batch_end(self, batch: int) -> None: ...


class Resting:
    def on_epoch_end(self, epoch: int) -> None: ...


class Rows:
    def __getitem__(self, index: int) -> int:
        return index


def fit(
    self: Any,
    x: Any,
    epochs: int | None = None,
    steps_per_epoch: int | None = None,
    callbacks: Any = None,
    epoch_iterator: Any = None,
    initial_epoch: int = 0,
) -> FrameType:
    return sys._getframe()


def model(**facts: Any) -> Any:
    usual: dict[str, Any] = {
        "layers": [],
        "optimizer": None,
        "loss": "mse",
        "count_params": lambda: 12,
    }
    return SimpleNamespace(**{**usual, **facts})


def test_facts_of_a_fit() -> None:
    epoch_iterator = SimpleNamespace(
        data_adapter=SimpleNamespace(
            py_dataset=SimpleNamespace(workers=3, use_multiprocessing=True)
        ),
        num_batches=40,
    )
    trained = model(steps_per_execution=4, run_eagerly=True, jit_compile=False)

    facts = describe_fit(fit(trained, x=Rows(), epochs=2, epoch_iterator=epoch_iterator))

    assert (facts.loss, facts.optimizer, facts.parameter_count) == ("mse", None, 12)
    assert (facts.steps_per_execution, facts.run_eagerly, facts.jit_compile) == (4, True, False)
    assert (facts.epochs, facts.steps_per_epoch) == (2, 40)
    assert (facts.workers, facts.use_multiprocessing) == (3, True)
    line = Rows.__getitem__.__code__.co_firstlineno
    assert (facts.source, facts.source_file, facts.source_line) == ("Rows", __file__, line)


def test_the_users_steps_per_epoch_win() -> None:
    epoch_iterator = SimpleNamespace(data_adapter=object(), num_batches=40)

    facts = describe_fit(fit(model(), x=1, steps_per_epoch=7, epoch_iterator=epoch_iterator))

    assert facts.steps_per_epoch == 7


def test_the_steps_that_a_fit_was_asked_for() -> None:
    walker = SimpleNamespace(data_adapter=object(), num_batches=40)
    endless = SimpleNamespace(data_adapter=object(), num_batches=None)

    assert planned_steps(fit(model(), x=1, epochs=3, epoch_iterator=walker)) == 120
    assert planned_steps(fit(model(), x=1, epochs=9, initial_epoch=7, epoch_iterator=walker)) == 80
    assert planned_steps(fit(model(), x=1, epochs=3, epoch_iterator=endless)) is None


def adapted(**facts: Any) -> FrameType:
    return fit(model(), x=1, epoch_iterator=SimpleNamespace(data_adapter=SimpleNamespace(**facts)))


@pytest.mark.parametrize(
    ("facts", "size"),
    [
        ({"batch_size": 32}, 32),
        ({"batch_size": lambda: 16}, 16),
        ({"batch_size": None, "py_dataset": SimpleNamespace(batch_size=8)}, 8),
        ({"_first_batches": [({"a": np.zeros((4, 2))}, np.zeros(4))]}, 4),
        ({"_first_batches": []}, None),
        ({"py_dataset": object()}, None),
    ],
)
def test_batch_size_as_the_adapter_knows_it(facts: dict[str, Any], size: int | None) -> None:
    assert batch_size_of(adapted(**facts)) == size


def test_callbacks_name_the_hooks_that_the_user_wrote() -> None:
    container = SimpleNamespace(callbacks=[Counting(), Resting()])

    counting, resting = describe_fit(fit(model(), x=1, callbacks=container)).callbacks

    line = Counting.on_train_batch_end.__code__.co_firstlineno
    assert (counting.name, counting.batch_hooks) == ("Counting", ["on_train_batch_end"])
    assert (counting.file, counting.line) == (__file__, line)
    assert (resting.name, resting.batch_hooks) == ("Resting", [])


def test_a_model_that_cannot_be_counted() -> None:
    def unbuilt() -> int:
        raise ValueError("build it first")

    assert describe_fit(fit(model(count_params=unbuilt), x=1)).parameter_count is None
