"""What the script's own training had reached before steps of pipediag's trained on beside it.

Steps on a repeated batch and steps of trials train the model as well. What they change is put back
before the script does anything else with it: before it is stopped, goes on, or saves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pipediag.capture.guard import Guard
from pipediag.capture.measuring.training_state import (
    NotRestoredError,
    TrainingState,
    lacks_memory,
)


class KeptState:
    """Kept from the first step of pipediag's own on, until the script has its training back."""

    def __init__(self, guard: Guard, note: Callable[[str], None]) -> None:
        self._guard = guard
        self._note = note
        self._before_saving = guard.entry(
            "putting the training back before it is saved", lambda *_, **__: self.show()
        )
        self._state: TrainingState | None = None
        self.lost: str | None = None
        """Why the training could not be put back, as the end of a sentence: nothing more is tried
        then, and the script is stopped."""

    def keep(self) -> str | None:
        """Keep it as it is now, if that is not done yet.

        Returns why it can't be kept, as the end of a sentence.
        """
        if self.lost is not None:
            return self.lost
        if self._state is None:
            lack = lacks_memory()
            if lack is not None:
                return lack
            self._state = TrainingState()
        return None

    def give_back(self) -> None:
        """The script goes its own way from here on."""
        state, self._state = self._state, None
        if state is not None:
            self._put_back(state.restore)

    def show(self) -> None:
        """The script looks at its training, or saves it, and steps of ours may follow."""
        if self._state is not None:
            self._put_back(self._state.restore_values)

    def _put_back(self, restore: Callable[[], None]) -> None:
        try:
            restore()
        except NotRestoredError as error:
            if self.lost is None:
                self._note(f"Nothing more was tried, and the script was stopped: {error}.")
            self.lost = str(error)

    def show_before(self, paths: tuple[str, ...], module: Any) -> None:
        """Hook onto functions of a module, by their paths in it, through which a script looks."""
        for path in paths:
            *owner, name = path.split(".")
            place = functools.reduce(getattr, owner, module)
            if hasattr(place, name):
                setattr(place, name, self._guard.before(getattr(place, name), self._before_saving))
