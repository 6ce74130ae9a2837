"""Which Keras the script has imported, and how it computes."""

from __future__ import annotations

import sys

from pipediag.capture.environment import version_of
from pipediag.session.recording import RecordedEnvironment

_POLICIES = (
    ("tf_keras.src.mixed_precision.policy", "global_policy"),
    ("keras.src.mixed_precision.policy", "global_policy"),
    ("keras.src.dtype_policies.dtype_policy", "dtype_policy"),
)
"""Of Keras 2 first: where it is imported, Keras 3 may be imported beside it and train nothing."""


def describe(environment: RecordedEnvironment) -> None:
    """Fill in version, backend and precision."""
    environment.keras = version_of("keras") or version_of("tf_keras")
    environment.legacy_keras = "tf_keras" in sys.modules
    configuration = sys.modules.get("keras.src.backend.config")
    if configuration is not None:
        environment.keras_backend = configuration.backend()
    elif environment.legacy_keras:
        environment.keras_backend = "tensorflow"
    name = _policy()
    if name is not None:
        environment.mixed_precision = name if name.startswith("mixed") else None


def _policy() -> str | None:
    """What layers compute in that were not given a policy of their own."""
    for module, function in _POLICIES:
        policies = sys.modules.get(module)
        if policies is not None:
            return str(getattr(policies, function)().name)
    return None
