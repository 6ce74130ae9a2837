"""A script's own clock: the moment at which each of its steps begins, in a file when it ends."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def step_stamps(path: str) -> Iterator[Callable[[], None]]:
    """Gives a function to call at the beginning of each step.

    Its `time.monotonic_ns()` are written to `path` as signed 64-bit integers, also when the loop is
    stopped in the middle.
    """
    stamps: list[int] = []

    def stamp() -> None:
        stamps.append(time.monotonic_ns())

    try:
        yield stamp
    finally:
        Path(path).write_bytes(array("q", stamps).tobytes())
