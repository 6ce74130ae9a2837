"""Protobuf's variable-length integers, many at a time.

Each byte holds seven bits, lowest first; the high bit says that another byte follows. Eight bytes
are looked at as one 64-bit word, so that a whole column is decoded by a handful of numpy calls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Positions = NDArray[np.int64]

PADDING = 24
"""Bytes that must follow the last position that is looked at."""

_ONE = np.uint64(1)
_CONTINUES = np.uint64(0x8080808080808080)
_PAYLOAD = np.uint64(0x7F7F7F7F7F7F7F7F)
# Each step joins neighbours into groups twice as wide: 7 bits to 14, to 28, to 56.
_JOIN = (
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
)
_LOW_BYTE = np.uint64(0xFF)
_BITS_IN_WORD = np.uint64(56)


def words_of(data: Bytes) -> Words:
    """The eight bytes from every position on, as little-endian words; a view, nothing is copied."""
    count = max(0, len(data) - 7)
    return np.ndarray((count,), np.dtype("<u8"), data.data, strides=(1,))


def varints_at(words: Words, positions: Positions) -> tuple[Words, Positions]:
    """The integers at these positions, and the bytes that each takes; 0 bytes where it is none.

    Longer than ten bytes, or above 64 bits, is none.
    """
    low = words[positions]
    values, lengths = short_varints(low)
    long = np.flatnonzero(lengths == 0)
    if len(long):
        values[long], lengths[long] = _long_varints(low[long], words[positions[long] + 8])
    return values, lengths


def short_varints(words: Words) -> tuple[Words, Positions]:
    """The integers that begin with these words' lowest bytes; 0 bytes where eight do not end it."""
    stops = ~words & _CONTINUES
    lowest = stops & (~stops + _ONE)
    # The lowest stop bit is a power of two, whose exponent a float shows.
    exponents = (lowest.astype(np.float64).view(np.int64) >> 52) - 1023
    lengths = np.where(lowest == 0, 0, (exponents + 1) >> 3)
    return _squeeze(words & (lowest - _ONE)), lengths


def _long_varints(low: Words, high: Words) -> tuple[Words, Positions]:
    ninth, tenth = high & _LOW_BYTE, (high >> np.uint64(8)) & _LOW_BYTE
    values = _squeeze(low) | ((ninth & np.uint64(0x7F)) << _BITS_IN_WORD)
    two_more = ninth >= 0x80
    values |= np.where(two_more, tenth << np.uint64(63), np.uint64(0))
    lengths = np.where(two_more, np.where(tenth <= 1, 10, 0), 9)
    return values, lengths


def _squeeze(words: Words) -> Words:
    values = words & _PAYLOAD
    for low, high, distance in _JOIN:
        values = (values & low) | ((values & high) >> distance)
    return values
