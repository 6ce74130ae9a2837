"""A Keras list of callbacks whose turns are clocked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pipediag.capture.frameworks.keras.listed_callbacks import ListedCallbacks
from pipediag.capture.measuring.stacks import CALLBACK_CLOCK


class ClockedCallbacks(ListedCallbacks):
    """Takes the time of each callback from its turn to the next one's."""

    def __iter__(self) -> Iterator[Any]:
        for callback in super().__iter__():
            began_ns = time.monotonic_ns()
            yield callback
            CALLBACK_CLOCK.add(type(callback).__name__, time.monotonic_ns() - began_ns)


def clocked(callback_list: Any) -> ClockedCallbacks | None:
    """None where the list is of a kind that can't be replaced."""
    plain = type(getattr(callback_list, "callbacks", None)) is list
    return ClockedCallbacks(callback_list) if plain else None
