"""Kineto's times as nanoseconds: microseconds since 1970 with decimals, too long for a float."""

from __future__ import annotations

from decimal import Decimal

from pipediag.trace.malformed import MalformedError

LARGEST_NS = 1 << 62
"""1970 to 2116; what lies beyond is damage."""

_DIGITS = 18


def start_and_end(ts: Decimal, dur: Decimal | None) -> tuple[int, int]:
    """Both ends in nanoseconds, rounded towards zero; a duration below zero counts as none.

    Raises MalformedError where a time is too large for a clock.
    """
    if dur is None or not dur.is_finite() or dur <= 0:
        start = nanoseconds(ts)
        return start, start
    nanoseconds(dur)
    return nanoseconds(ts), nanoseconds(ts + dur)


def nanoseconds(microseconds: Decimal) -> int:
    """A time. Raises MalformedError."""
    # Before it is multiplied out: "1e999999999" is a number too.
    within = microseconds.is_finite() and microseconds.adjusted() < _DIGITS
    found = int(microseconds * 1000) if within else LARGEST_NS
    if abs(found) >= LARGEST_NS:
        raise MalformedError(f"it claims a time of {microseconds:.3g} us")
    return found
