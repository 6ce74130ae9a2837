"""Keras and TensorFlow, where they are ones that these optimizers can work with."""

from __future__ import annotations

from typing import Any


def _keras_3_on_tensorflow() -> tuple[Any, Any]:
    """Both modules.

    Raises:
        ImportError: one is missing, Keras is older than 3, or has another backend.
    """
    try:
        import keras
    except ModuleNotFoundError as error:
        raise ImportError(
            "pipediag.optimizers needs Keras 3 and TensorFlow, and Keras is not installed. "
            "Install them with: pip install tensorflow"
        ) from error
    if int(keras.__version__.partition(".")[0]) < 3:
        raise ImportError(
            f"pipediag.optimizers needs Keras 3, and Keras {keras.__version__} is installed, whose "
            "optimizers are built otherwise. Update to TensorFlow 2.16 or newer, or use the "
            "LazyAdam of TensorFlow Addons."
        )
    if (backend := keras.backend.backend()) != "tensorflow":
        raise ImportError(
            f"pipediag.optimizers needs Keras on TensorFlow, and Keras runs on {backend}, where "
            "gradients of embeddings are dense. Set KERAS_BACKEND=tensorflow, or use the "
            "optimizers of Keras."
        )
    import tensorflow

    return keras, tensorflow


keras, tf = _keras_3_on_tensorflow()
