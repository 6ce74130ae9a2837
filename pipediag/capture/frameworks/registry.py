"""The frameworks that pipediag knows."""

from __future__ import annotations

from pipediag.capture.frameworks.framework import Framework
from pipediag.capture.frameworks.jax.framework import Jax
from pipediag.capture.frameworks.keras.framework import Keras
from pipediag.capture.frameworks.tensorflow.framework import TensorFlow

FRAMEWORKS: tuple[Framework, ...] = (TensorFlow(), Keras(), Jax())
