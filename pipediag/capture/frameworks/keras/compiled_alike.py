"""A model made of the user's layers, compiled as the user's is."""

from __future__ import annotations

from typing import Any

_LOSS = ("loss", "_compile_loss")
_COUNTED = ("_compile_metrics", "_loss_tracker")
"""Attributes of a compiled model."""


def compile_alike(rest: Any, model: Any, **otherwise: Any) -> None:
    """Compile `rest` as `model` is at this moment.

    Args:
        otherwise: arguments of `compile` that it is to have in the place of the model's own.
    """
    from keras.src.utils.tracking import DotNotTrackScope

    alike = {
        "optimizer": model.optimizer,
        "run_eagerly": model.run_eagerly,
        "steps_per_execution": model.steps_per_execution,
        "jit_compile": model.jit_compile,
        "auto_scale_loss": False,
    }
    rest.compile(**(alike | otherwise))
    with DotNotTrackScope():
        # Shared, as other ways to compile the model count into them too.
        for name in (*(() if "loss" in otherwise else _LOSS), *_COUNTED):
            setattr(rest, name, getattr(model, name))
