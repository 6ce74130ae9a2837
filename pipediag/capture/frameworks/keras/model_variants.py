"""The user's Keras model compiled otherwise, in the middle of its `fit`, and back again."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from pipediag.capture.frameworks.keras.input_layers import WithoutInputLayers
from pipediag.capture.replay.changes import MOVED_LAYERS
from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.capture.runtime import Settings
from pipediag.capture.signals import let_pass
from pipediag.session.edits import ANEW
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS

_NAMES = ("jit_compile", "run_eagerly", "steps_per_execution")
_POLICY = "dtype_policy"
_PLAIN, _MIXED = "float32", "mixed_"
"""The usual policy, and the beginning of the names of those that compute in 16 bits."""
_OPTIMIZER = "optimizer"
_ONLY_ADVISED = {"table_terms_left_out", "sampled_softmax"}
"""Settings of edits that change what the model computes."""
_OF_KERAS_2 = (*_NAMES, ANEW)
_SETTINGS = (*_OF_KERAS_2, _POLICY, _OPTIMIZER, MOVED_LAYERS)

_KERAS_3 = "keras.src.backend.tensorflow.trainer"
_KERAS_2 = ("tf_keras.src.engine.training", "keras.src.engine.training")
"""Modules of the class that trains: Keras 2 is `keras` beside TensorFlow 2.14 and 2.15."""


class ModelVariants:
    """Keeps a training function for each choice of settings; `fit` looks it up at every step.

    `failed` receives an error in a variant's step, which then runs as the user compiled it.
    """

    def __init__(self, model: Any, failed: Callable[[BaseException], None]) -> None:
        self.model: Any = model
        self._failed = failed
        modules = {base.__module__ for base in type(model).__mro__}
        self._is_keras_3 = _KERAS_3 in modules
        self._kept: _CompileSettings | None = None
        if self._is_keras_3:
            self._kept = _CompileSettings(model)
            self._policies = _LayerPolicies(model)
            self._optimizer = _OptimizerInPlace(model)
        elif modules.intersection(_KERAS_2):
            self._kept = _Keras2Settings(model)
        self._shortened = WithoutInputLayers(model)
        self._functions: dict[tuple[Any, ...], Any] = {}
        self._own: Settings = {}
        if self._kept is not None:
            others = {ANEW: False, _POLICY: None, _OPTIMIZER: None, MOVED_LAYERS: ()}
            self._own = {**self._kept.read(), **others}
            self._functions[_key(self._own)] = model.train_function
        self._current = self._own

    def check(self, settings: Settings) -> None:
        """Raise NotReplayableError if the model can't be compiled so."""
        if not settings:
            return
        if self._kept is None:
            raise NotReplayableError(
                "Only a model in a Keras `fit` on TensorFlow can be compiled otherwise."
            )
        if _ONLY_ADVISED & settings.keys():
            raise NotReplayableError(
                "This change of the model is not tried in the running loop: make it by hand."
            )
        unknown = sorted(settings.keys() - set(_SETTINGS))
        if unknown:
            raise NotReplayableError(f"A model can't be compiled with other {', '.join(unknown)}.")
        if not self._is_keras_3:
            if not settings.keys() <= set(_OF_KERAS_2):
                raise NotReplayableError(
                    "It is tried in Keras 3 only: of a model of Keras 2 no more than "
                    f"{', '.join(_NAMES)} is changed. Make the change by hand."
                )
            return
        self._shortened.check(settings.get(MOVED_LAYERS, ()))
        if _OPTIMIZER in settings:
            self._optimizer.check(settings[_OPTIMIZER])
        if settings.get("jit_compile"):
            from keras.src.trainers.trainer import model_supports_jit

            if not model_supports_jit(self.model):
                raise NotReplayableError("A layer of the model does not support XLA.")

    def use(self, settings: Settings) -> None:
        """Train with these settings from the next step on; none are the user's own."""
        wanted = {**self._own, **settings}
        if wanted == self._current:
            return
        try:
            self._set(wanted)
        except BaseException:
            # Half of them may be set, which the next steps must not be made with.
            self._set(self._own)
            raise

    def batches_per_step(self, settings: Settings, own: int) -> int:
        """Return the batches that one step takes, `own` without settings."""
        return int(settings.get("steps_per_execution") or own)

    def on_elements(self, settings: Settings) -> Callable[..., Any] | None:
        """Return what the pipeline maps over elements in the model's place, if anything."""
        moved = settings.get(MOVED_LAYERS, ())
        return self._shortened.on_elements(moved) if moved else None

    def _set(self, wanted: Settings) -> None:
        assert self._kept is not None
        model, key = self.model, _key(wanted)
        self._kept.write(wanted)
        if self._is_keras_3:
            self._policies.use(wanted[_POLICY])
            self._optimizer.use(wanted[_OPTIMIZER])
        if key not in self._functions:
            moved = wanted[MOVED_LAYERS]
            made = self._shortened.train_function(moved) if moved else self._kept.train_function()
            self._functions[key] = self._guarded(made)
        model.train_function = self._functions[key]
        self._current = wanted

    def _guarded(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def train(iterator: Any) -> Any:
            try:
                return function(iterator)
            except StopIteration:
                raise
            except Exception as error:
                let_pass(error)
                self._failed(error)
                self.use({})
                return self.model.train_function(iterator)

        return train


def _key(settings: Settings) -> tuple[Any, ...]:
    return tuple(settings[name] for name in _SETTINGS)


class _CompileSettings:
    """Settings of a compiled model of Keras 3, read and set without compiling it anew."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def read(self) -> Settings:
        return {name: getattr(self._model, name) for name in _NAMES}

    def write(self, settings: Settings) -> None:
        """Set them for the training function that is made next, and while it runs."""
        for name in _NAMES:
            setattr(self._model, name, settings[name])

    def train_function(self) -> Callable[[Any], Any]:
        """Make a new one, by what is set."""
        self._model.make_train_function(force=True)
        function: Callable[[Any], Any] = self._model.train_function
        return function


class _Keras2Settings(_CompileSettings):
    """Settings behind the properties of Keras 2, which lack, or drop compiled functions when set.

    The number of steps is a variable: a compiled function of several reads it at each call.
    """

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

    def train_function(self) -> Callable[[Any], Any]:
        # The graph that a TensorBoard callback writes is the script's own.
        graph = getattr(self._model, "train_tf_function", None)
        function: Callable[[Any], Any] = self._model.make_train_function(force=True)
        self._model.train_tf_function = graph
        return function


class _LayerPolicies:
    """Lets layers of a built model compute in 16 bits, with their own variables, or again in 32.

    Layers under a mixed policy compute in 32. In 16 do all but layers whose policy the user chose,
    and those whose results are the model's: losses are computed from these, and Keras' guide keeps
    them in float32.
    """

    def __init__(self, model: Any) -> None:
        outputs = getattr(model, "outputs", None) or []
        histories = [getattr(output, "_keras_history", None) for output in outputs]
        last = [one.operation for one in histories if one is not None] or list(model.layers)[-1:]
        owned = [(layer, layer.dtype_policy) for layer in model._flatten_layers(include_self=True)]
        self._plain = [
            (layer, own)
            for layer, own in owned
            if own.name == _PLAIN and not any(layer is one for one in last)
        ]
        self._mixed = [(layer, own) for layer, own in owned if own.name.startswith(_MIXED)]

    def use(self, policy: str | None) -> None:
        """Set a policy by its name, as `mixed_bfloat16` or `float32`; None is the layers' own."""
        from keras.src import dtype_policies

        for layer, own in (*self._plain, *self._mixed):
            layer.dtype_policy = own
        if policy is not None:
            # Keras 3.0 keeps in a layer whatever it is given.
            wanted = dtype_policies.get(policy)
            for layer, _ in self._mixed if policy == _PLAIN else self._plain:
                layer.dtype_policy = wanted


ROW_WISE = "row_wise"
"""The optimizer with the same rule as the model's own, for the rows of the batch alone."""

_REFUSED = ("gradient_accumulation_steps", "loss_scale_factor")
"""Arguments that the optimizers of `pipediag.optimizers` refuse."""


class _OptimizerInPlace:
    """Lets a model train with another optimizer, which has variables of its own."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._own: Any = getattr(model, "optimizer", None)
        self._made: Any = None

    def check(self, name: str) -> None:
        """Raise NotReplayableError if there is no such optimizer for the model."""
        if name != ROW_WISE:
            raise NotReplayableError(f"No model is trained with {name} here.")
        if type(self._own).__name__ not in ROW_WISE_OPTIMIZERS:
            raise NotReplayableError(
                f"There is no row-wise optimizer in place of {type(self._own).__name__}."
            )
        if any(getattr(self._own, one, None) for one in _REFUSED):
            raise NotReplayableError(
                "No row-wise optimizer accumulates gradients or scales the loss, as the model's "
                "own does."
            )

    def use(self, name: str | None) -> None:
        """Set an optimizer by its name; None is the model's own."""
        wanted = self._own if name is None else self._row_wise()
        if getattr(self._model, "optimizer", None) is not wanted:
            self._model.optimizer = wanted

    def _row_wise(self) -> Any:
        if self._made is None:
            # Found as the script would find it, so that it is what the script can have.
            ours = importlib.import_module("pipediag.optimizers")
            kind = getattr(ours, ROW_WISE_OPTIMIZERS[type(self._own).__name__])
            # Averages of the weights pass over the whole table, whatever updates it.
            changed = {"name": "pipediag_row_wise", "use_ema": False}
            other = kind.from_config({**self._own.get_config(), **changed})
            other.build(self._model.trainable_variables)
            averages = getattr(self._own, "_model_variables_moving_average", None) or []
            left_out = {id(one) for one in averages}
            theirs = [one for one in self._own.variables if id(one) not in left_out]
            # It goes on from the moments that there are, as the model's own would.
            for mine, own in zip(other.variables, theirs, strict=True):
                mine.assign(own)
            self._made = other
        return self._made
