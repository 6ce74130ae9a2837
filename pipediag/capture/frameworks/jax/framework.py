"""JAX is only described: its training is seen through Keras's loops on tf.data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipediag.capture.frameworks.framework import Hook
from pipediag.capture.recorder import version_of
from pipediag.capture.watching.watchers import Watchers
from pipediag.session.recording import RecordedEnvironment


class Jax:
    """Nothing is hooked into."""

    arrives_with = "jax"
    trainer = None
    looks_at_training: Mapping[str, tuple[str, ...]] = {}

    def hooks(self, watchers: Watchers) -> Iterator[tuple[str, Hook]]:  # noqa: ARG002
        """None."""
        yield from ()

    def describe(self, environment: RecordedEnvironment) -> None:
        """Its version."""
        environment.jax = version_of("jax")
