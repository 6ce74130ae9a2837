"""What every framework is to pipediag: where it is hooked into, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from pipediag.capture.runtime import Trainer
from pipediag.capture.watching.watchers import Watchers
from pipediag.session.recording import RecordedEnvironment

Hook = Callable[[Any], None]
"""Hooks into a module that has just been imported."""


class Framework(Protocol):
    """One folder beside this file, and one line in `registry`."""

    @property
    def arrives_with(self) -> str:
        """The package whose import comes before that of all modules that are hooked into."""

    @property
    def trainer(self) -> Trainer | None:
        """What runs loops for the script, if it does that."""

    @property
    def looks_at_training(self) -> Mapping[str, tuple[str, ...]]:
        """By module: functions through which a script saves or reads what it has trained."""

    def hooks(self, watchers: Watchers) -> Iterator[tuple[str, Hook]]:
        """Each module that may come, and what to do once it has; nothing is imported for it."""

    def describe(self, environment: RecordedEnvironment) -> None:
        """Fill in what its modules say, those that the script has imported, and set nothing up."""
