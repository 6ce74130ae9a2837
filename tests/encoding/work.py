"""What a call costs, counted and not timed: a busy machine changes nothing of it."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    """Of one call."""

    calls: int
    """Of functions, Python's and C's alike, each counted when it begins and when it ends."""
    peak_bytes: int
    """The most memory that it held at once, beside what was held before."""

    def is_within(self, calls: float, peak_bytes: float) -> bool:
        return self.calls <= calls and self.peak_bytes <= peak_bytes


def cost_of(function: Callable[[], T]) -> tuple[Cost, T]:
    """What it costs, and what it gave."""
    calls = 0

    def note(_frame: FrameType, _event: str, _argument: Any) -> None:
        nonlocal calls
        calls += 1

    profiled = sys.getprofile()
    tracemalloc.start()
    sys.setprofile(note)
    try:
        result = function()
    finally:
        sys.setprofile(profiled)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return Cost(calls, peak_bytes), result
