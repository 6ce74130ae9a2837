"""Where Keras 3 and Keras 2 keep how a model on TensorFlow was compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pipediag.capture.runtime import Settings

NAMES = ("jit_compile", "run_eagerly", "steps_per_execution")

_KERAS_3 = "keras.src.backend.tensorflow.trainer"
_KERAS_2 = ("tf_keras.src.engine.training", "keras.src.engine.training")
"""Modules of the class that trains: Keras 2 is `keras` beside TensorFlow 2.14 and 2.15."""


class CompileSettings(Protocol):
    """How one model was compiled, read and set without compiling it anew."""

    def read(self) -> Settings:
        """Each of NAMES."""

    def write(self, settings: Settings) -> None:
        """Set each of NAMES, for the training function that is made next, and while it runs."""

    def training_function(self) -> Callable[[Any], Any]:
        """A new one, by what is set."""

    def compiles_with_xla(self) -> bool:
        """Whether Keras says that all of the model can be."""


def compile_settings_of(model: Any) -> CompileSettings | None:
    """Those of a model that TensorFlow trains; None of anything else."""
    modules = {base.__module__ for base in type(model).__mro__}
    if _KERAS_3 in modules:
        return Keras3Settings(model)
    of_keras_2 = next((one for one in _KERAS_2 if one in modules), None)
    return None if of_keras_2 is None else Keras2Settings(model, of_keras_2.partition(".")[0])


class Keras3Settings:
    """Attributes of the model, by the same names."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def read(self) -> Settings:
        return {name: getattr(self._model, name) for name in NAMES}

    def write(self, settings: Settings) -> None:
        for name in NAMES:
            setattr(self._model, name, settings[name])

    def training_function(self) -> Callable[[Any], Any]:
        self._model.make_train_function(force=True)
        function: Callable[[Any], Any] = self._model.train_function
        return function

    def compiles_with_xla(self) -> bool:
        from keras.src.trainers.trainer import model_supports_jit

        return bool(model_supports_jit(self._model))


class Keras2Settings:
    """What lies behind its properties, which drop compiled functions when they are set, or lack.

    The number of steps is a variable: a compiled function of several reads it at each call.
    """

    def __init__(self, model: Any, package: str) -> None:
        self._model = model
        self.package = package

    def read(self) -> Settings:
        return {
            "jit_compile": self._model._jit_compile,
            "run_eagerly": self._model._run_eagerly,
            "steps_per_execution": int(self._model._steps_per_execution),
        }

    def write(self, settings: Settings) -> None:
        self._model._jit_compile = settings["jit_compile"]
        self._model._run_eagerly = settings["run_eagerly"]
        self._model._steps_per_execution.assign(settings["steps_per_execution"])

    def training_function(self) -> Callable[[Any], Any]:
        # The graph that a TensorBoard callback writes is the script's own.
        graph = getattr(self._model, "train_tf_function", None)
        function: Callable[[Any], Any] = self._model.make_train_function(force=True)
        self._model.train_tf_function = graph
        return function

    def compiles_with_xla(self) -> bool:
        return True
