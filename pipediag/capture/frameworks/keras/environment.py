"""Which Keras the script has imported, and how it computes."""

from __future__ import annotations

import sys

from pipediag.capture.environment import version_of
from pipediag.session.recording import RecordedEnvironment


def describe(environment: RecordedEnvironment) -> None:
    """Fill in version, backend and precision."""
    environment.keras = version_of("keras") or version_of("tf_keras")
    environment.legacy_keras = "tf_keras" in sys.modules
    configuration = sys.modules.get("keras.src.backend.config")
    if configuration is not None:
        environment.keras_backend = configuration.backend()
    elif environment.legacy_keras:
        environment.keras_backend = "tensorflow"
    policies = sys.modules.get("keras.src.dtype_policies.dtype_policy")
    if policies is not None:
        name = policies.dtype_policy().name
        environment.mixed_precision = name if name.startswith("mixed") else None
