"""What steps of a `fit` would change that could not be put back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipediag.capture.callsites import package_of
from pipediag.capture.frameworks.keras.compile_settings import compile_settings_of
from pipediag.capture.packages import KERAS, package_of_module
from pipediag.session.recorded_keras import RecordedKeras


def step_leaves_traces(model: Any, fit: RecordedKeras | None) -> str | None:
    """Why steps of it can't be made beside the script's own, as the end of a sentence."""
    if compile_settings_of(model) is None:
        return "only a Keras `fit` on TensorFlow can be taken back to where it was"
    if fit is None or fit.run_eagerly:
        return "a step that runs eagerly may do more than train"
    hooked = [callback.name for callback in fit.callbacks if callback.batch_hooks]
    if hooked:
        return (
            f"{', '.join(hooked)} takes part in every step, and can't be called for a step that "
            "is only tried"
        )
    return _python_around_the_step(getattr(model, "train_function", None))


def _python_around_the_step(function: Any) -> str | None:
    """What is called with each step in the place of Keras's own training function, as the end of a
    sentence: Python that may count, log or save around a compiled step."""
    if function is None or package_of_module(type(function).__module__) == "tensorflow":
        return None  # of a tf.function, Python runs only where it is traced
    # What a decorator says that it wraps is not asked: it is itself what is called.
    code = getattr(function, "__code__", None)
    if code is not None and package_of(code.co_filename) in KERAS:
        return None
    place = f" in {Path(code.co_filename).name}, line {code.co_firstlineno}," if code else ""
    name = code.co_name if code else type(function).__name__
    return f"{name}{place} runs Python around every step, and may do more than train"


def compiling_runs_the_scripts_code(model: Any) -> bool:
    """Whether another training function would be traced through classes of the script."""
    parts = [model, *model._flatten_layers()] if hasattr(model, "_flatten_layers") else [model]
    return any(package_of_module(type(part).__module__) not in KERAS for part in parts)
