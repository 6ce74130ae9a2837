"""Which Keras the script has imported, and how it computes."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pipediag.capture.recorder import version_of
from pipediag.session.recording import RecordedEnvironment

_POLICIES = (
    ("tf_keras.src.mixed_precision.policy", "global_policy"),
    ("keras.src.mixed_precision.policy", "global_policy"),
    ("keras.src.dtype_policies.dtype_policy", "dtype_policy"),
)
"""Several may be imported, of which one trains: a library as `transformers` imports its own."""


def describe(environment: RecordedEnvironment) -> None:
    """Fill in version, backend and precision."""
    environment.keras = version_of("keras") or version_of("tf_keras")
    environment.legacy_keras = "tf_keras" in sys.modules
    configuration = sys.modules.get("keras.src.backend.config")
    if configuration is not None:
        environment.keras_backend = configuration.backend()
    elif environment.legacy_keras:
        environment.keras_backend = "tensorflow"
    named = (name for name in _policies() if name.startswith("mixed"))
    environment.mixed_precision = next(named, None)


def _policies() -> Iterator[str]:
    """What layers of each Keras compute in that were not given a policy of their own."""
    for module, function in _POLICIES:
        policies = sys.modules.get(module)
        if policies is not None:
            yield str(getattr(policies, function)().name)
