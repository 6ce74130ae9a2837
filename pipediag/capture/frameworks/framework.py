"""The interface of a framework: where it is hooked into, and what it says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from pipediag.capture.runtime import Trainer
from pipediag.capture.watching.watchers import Watchers
from pipediag.session.recording import RecordedEnvironment

Hook = Callable[[Any], None]
"""Hooks into a module that has just been imported."""


class Framework(Protocol):
    """One folder beside this file, and one entry of `hooking.FRAMEWORKS`."""

    @property
    def arrives_with(self) -> str:
        """Return the package that is imported before all modules that are hooked into."""

    @property
    def trainer(self) -> Trainer | None:
        """Return what runs loops for the script, if it does that."""

    @property
    def looks_at_training(self) -> Mapping[str, tuple[str, ...]]:
        """Return, by module, the functions by which a script saves or reads what it has trained."""

    def hooks(self, watchers: Watchers) -> Iterator[tuple[str, Hook]]:
        """Yield each module that may be imported, with its hook; nothing is imported for it."""

    def describe(self, environment: RecordedEnvironment) -> None:
        """Fill in what the imported modules say, and set nothing up."""
