"""Upper bounds on what a change can buy, by Amdahl's law on measured times."""

from __future__ import annotations

MOST_FREED = 0.99
"""Part of a time that can go at most: what would remain of less is not known well enough to divide
by."""


def bound(whole: float, removable: float, calls: float | None = None) -> float | None:
    """Return how many times as fast something gets at most without the removable part of its time.

    With `calls` that part is not removed, but divided among so many calls at once. None where
    nothing is known to be removable.
    """
    freed = removable if calls is None else removable * (1.0 - 1.0 / max(calls, 1.0))
    if whole <= 0.0 or freed <= 0.0:
        return None
    return round(whole / (whole - min(freed, MOST_FREED * whole)), 3)
