"""The outermost of events that lie within one another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Times


def outermost(end_ns: Times) -> NDArray[np.bool_]:
    """Which events do not lie within an earlier one; given the ends of events as a line sorts them.

    JAX writes some events twice, one around the other. Events that overlap in part are all kept.
    """
    latest = np.maximum.accumulate(end_ns)
    kept = np.ones(len(end_ns), np.bool_)
    kept[1:] = end_ns[1:] > latest[:-1]
    return kept
