"""What one place of the run takes in the whole of it, from the times that were seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipediag.facts.run_gain import ONCE_OFF
from pipediag.measures.bootstrap import interval, resampled_means
from pipediag.session.record import Interval

FEWEST_FOR_INTERVAL = 3
"""Own choice: a bootstrap over two epochs would show the two."""


@dataclass(frozen=True)
class Projected:
    """Nanoseconds of a place in the whole, with the limits that its epochs' scatter gives."""

    ns: float
    count: int | None
    limits_ns: Interval | None = None
    projected: bool = True

    def plus_ns(self, ns: int) -> Projected:
        """With time that came before, about which there is no doubt; its count is not known."""
        if not ns:
            return self
        limits = (self.limits_ns[0] + ns, self.limits_ns[1] + ns) if self.limits_ns else None
        return Projected(self.ns + ns, None, limits, self.projected)

    def times(self, rounds: int) -> Projected:
        """As often as it comes."""
        if rounds == 1:
            return self
        count = None if self.count is None else self.count * rounds
        return replace(self.share(rounds), count=count)

    def share(self, of_it: float) -> Projected:
        """A part of it, or a multiple."""
        limits = (self.limits_ns[0] * of_it, self.limits_ns[1] * of_it) if self.limits_ns else None
        return Projected(self.ns * of_it, self.count, limits, self.projected)

    def together(self, other: Projected) -> Projected:
        """Both, which may be off in the same direction; the count is that of the larger."""
        larger = max(self, other, key=lambda one: one.ns)
        limits = None
        if self.limits_ns is not None or other.limits_ns is not None:
            (low, high), (others_low, others_high) = self._bounds_ns, other._bounds_ns
            limits = (low + others_low, high + others_high)
        projected = self.projected or other.projected
        return Projected(self.ns + other.ns, larger.count, limits, projected)

    @property
    def _bounds_ns(self) -> Interval:
        return self.limits_ns or (self.ns, self.ns)


def in_doubt(ns: float, count: int | None) -> Projected:
    """What follows from too few to scatter: as much off as what comes once is from run to run."""
    return Projected(ns, count, ((1.0 - ONCE_OFF) * ns, (1.0 + ONCE_OFF) * ns))


def as_often(times_ns: Sequence[int], factor: float) -> Projected:
    """What came these times, that many times as often; nobody knows how often that is."""
    return replace(projected(times_ns, len(times_ns)).share(factor), count=None)


def projected(times_ns: Sequence[int], count: int) -> Projected:
    """Return `count` times the mean of the times seen, with the limits that their scatter gives.

    Two times are their own limits; one is as much off as what comes once is from run to run.
    """
    if not times_ns or count <= 0:
        return Projected(0.0, count)
    mean = sum(times_ns) / len(times_ns)
    if len(times_ns) < FEWEST_FOR_INTERVAL:
        low, high = min(times_ns) * (1.0 - ONCE_OFF), max(times_ns) * (1.0 + ONCE_OFF)
        return Projected(mean * count, count, (low * count, high * count))
    low, high = interval(resampled_means(times_ns))
    return Projected(mean * count, count, (low * count, high * count))
