"""The user's Keras model compiled otherwise, in the middle of its `fit`, and back again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipediag.capture.frameworks.keras.compile_settings import (
    NAMES,
    CompileSettings,
    Keras2Settings,
    Keras3Settings,
    compile_settings_of,
)
from pipediag.capture.frameworks.keras.layer_policies import Keras2LayerPolicies, LayerPolicies
from pipediag.capture.frameworks.keras.other_optimizers import OptimizerInPlace
from pipediag.capture.frameworks.keras.without_input_layers import WithoutInputLayers
from pipediag.capture.replay import MOVED_LAYERS, NotReplayableError
from pipediag.capture.runtime import Settings
from pipediag.capture.signals import let_pass
from pipediag.session.edits import ANEW

_POLICY = "dtype_policy"
_OPTIMIZER = "optimizer"
_KERAS_3_ONLY = (_OPTIMIZER, MOVED_LAYERS)
_ONLY_ADVISED = {"table_terms_left_out", "sampled_softmax"}
"""Settings of edits that change what the model computes."""
_OF_KERAS_2 = (*NAMES, _POLICY)
_SETTINGS = (*_OF_KERAS_2, ANEW, *_KERAS_3_ONLY)


class CompiledVariants:
    """Keeps a training function for each choice of settings; `fit` looks it up at every step.

    `failed` is told of an error in a variant's step, which then runs as the user compiled it.
    """

    def __init__(self, model: Any, failed: Callable[[BaseException], None]) -> None:
        self._kept = compile_settings_of(model)
        self.model: Any = model
        self._failed = failed
        self._functions: dict[tuple[Any, ...], Any] = {}
        self._own: Settings = {}
        self._shortened = WithoutInputLayers(model)
        if self._kept is not None:
            self._own = {**self._kept.read(), ANEW: False, _POLICY: None}
            self._own |= {_OPTIMIZER: None, MOVED_LAYERS: ()}
            self._functions[_key(self._own)] = model.train_function
        if isinstance(self._kept, Keras2Settings):
            self._policies: LayerPolicies = Keras2LayerPolicies(model, self._kept.package)
        if isinstance(self._kept, Keras3Settings):
            self._policies = LayerPolicies(model)
            self._optimizer = OptimizerInPlace(model)
        self._current = self._own

    def check(self, settings: Settings) -> None:
        """See whether the model can be compiled so.

        Raises:
            NotReplayableError: it can't.
        """
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
        if not isinstance(self._kept, Keras3Settings):
            if not settings.keys() <= {*_OF_KERAS_2, ANEW}:
                raise NotReplayableError(
                    "It is tried in Keras 3 only: of a model of Keras 2 no more than "
                    f"{', '.join(_OF_KERAS_2)} is changed."
                )
            return
        self._shortened.check(settings.get(MOVED_LAYERS, ()))
        if _OPTIMIZER in settings:
            self._optimizer.check(settings[_OPTIMIZER])
        if settings.get("jit_compile") and not self._kept.compiles_with_xla():
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
        """Batches that one call of the training function takes, `own` without settings."""
        return int(settings.get("steps_per_execution") or own)

    def on_elements(self, settings: Settings) -> Callable[..., Any] | None:
        """What the model leaves to the pipeline; None where that is nothing."""
        moved = settings.get(MOVED_LAYERS, ())
        return self._shortened.on_elements(moved) if moved else None

    def _set(self, wanted: Settings) -> None:
        assert self._kept is not None
        model, key = self.model, _key(wanted)
        self._kept.write(wanted)
        self._policies.use(wanted[_POLICY])
        if isinstance(self._kept, Keras3Settings):
            self._optimizer.use(wanted[_OPTIMIZER])
        if key not in self._functions:
            self._functions[key] = self._guarded(self._made(self._kept, wanted))
        model.train_function = self._functions[key]
        self._current = wanted

    def _made(self, kept: CompileSettings, wanted: Settings) -> Callable[[Any], Any]:
        if wanted[MOVED_LAYERS]:
            return self._shortened.train_function(wanted[MOVED_LAYERS])
        return kept.training_function()

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
