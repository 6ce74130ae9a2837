"""Whether a step does more than train, with Keras and TensorFlow played by classes like theirs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from pipediag.capture.frameworks.keras.leaves_traces import step_leaves_traces
from tests.recordings import make_recorded_loop

TensorFlowFunction = type(
    "Function", (), {"__module__": "tensorflow.python.eager.polymorphic_function"}
)
Trainer = type("TensorFlowTrainer", (), {"__module__": "keras.src.backend.tensorflow.trainer"})


def of_keras() -> Callable[[Any], Any]:
    """Keras 3's: Python of its own around a tf.function."""
    space: dict[str, Any] = {}
    file = "/usr/lib/site-packages/keras/src/backend/tensorflow/trainer.py"
    exec(compile("def function(iterator): return 0.5", file, "exec"), space)
    found: Callable[[Any], Any] = space["function"]
    return found


def counted(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @functools.wraps(function)
    def function_and_count(iterator: Any) -> Any:
        return function(iterator)

    return function_and_count


class Counting:
    def __call__(self, iterator: Any) -> Any: ...


def reason_for(function: Any) -> str | None:
    model: Any = Trainer()
    model.train_function = function
    return step_leaves_traces(model, make_recorded_loop().keras)


@pytest.mark.parametrize("function", [None, TensorFlowFunction(), of_keras()])
def test_a_training_function_of_keras_or_tensorflow_only_trains(function: Any) -> None:
    assert reason_for(function) is None


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (counted(of_keras()), "function_and_count in test_leaves_traces.py, line"),
        (Counting(), "Counting"),
        (functools.partial(of_keras()), "partial"),
    ],
)
def test_python_of_the_scripts_own_around_it_may_do_more(function: Any, named: str) -> None:
    reason = reason_for(function)

    assert reason is not None
    assert reason.startswith(named)
    assert reason.endswith("may do more than train")
