"""Which steps build something: a call that traced a function ends in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipediag.session.timeline import Span, Timeline
from pipediag.vocabulary import SpanKind

_BUILDS: frozenset[SpanKind] = frozenset({"first_call", "tracing"})


class Building:
    """All that was traced in a run, as its timeline tells."""

    def __init__(self, timeline: Timeline) -> None:
        self.spans: list[Span] = [one for one in timeline.spans if one.kind in _BUILDS]
        ends_ns = [one.end_ns for one in self.spans if one.end_ns is not None]
        self._ends_ns: NDArray[np.int64] = np.sort(np.array(ends_ns, dtype=np.int64))

    def is_in(self, start_ns: int, step_ns: int) -> bool:
        """Whether such a call ends in that step, before which it begins a little."""
        moments = (start_ns, start_ns + step_ns)
        ended_before, ended = np.searchsorted(self._ends_ns, moments, "right")
        return bool(ended > ended_before)
