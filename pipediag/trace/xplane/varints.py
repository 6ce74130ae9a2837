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
# Each step joins neighbours into groups twice as wide: 7 bits to 14, to 28, to 56. It changes only
# what is wider than the bits at its end.
_JOIN = (
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1), 8),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2), 16),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4), 32),
)
_LOW_BYTE = np.uint64(0xFF)
_BITS_IN_BYTE = np.uint64(8)
_BITS_IN_WORD = np.uint64(56)
_PAYLOAD_BITS = np.uint64(7)
_COUNTS = np.uint64(0x0102030405060708)
"""A count of bytes for each byte that the lowest stop bit may lie in, the first one's highest."""


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


def tagged_varints(words: Words, positions: Positions) -> tuple[Words, Words, Positions]:
    """The bytes at these positions and the integers behind them, as `varints_at` gives these."""
    found = words[positions]
    values, lengths = short_varints(found >> _BITS_IN_BYTE)
    # Of a word shifted by a byte, the eighth ends every integer.
    long = np.flatnonzero(lengths == 8)
    if len(long):
        values[long], lengths[long] = varints_at(words, positions[long] + 1)
    return found & _LOW_BYTE, values, lengths


def short_varints(words: Words) -> tuple[Words, Positions]:
    """The integers that begin with these words' lowest bytes; 0 bytes where eight do not end it."""
    stops = ~words & _CONTINUES
    first = stops & (~stops + _ONE)
    # Without a stop bit the product is 0; with one, its highest byte is the count of bytes.
    lengths = ((first >> _PAYLOAD_BITS) * _COUNTS) >> _BITS_IN_WORD
    return squeezed(words & (first - _ONE)), lengths.view(np.int64)


def _long_varints(low: Words, high: Words) -> tuple[Words, Positions]:
    ninth, tenth = high & _LOW_BYTE, (high >> np.uint64(8)) & _LOW_BYTE
    values = squeezed(low) | ((ninth & np.uint64(0x7F)) << _BITS_IN_WORD)
    two_more = ninth >= 0x80
    values |= np.where(two_more, tenth << np.uint64(63), np.uint64(0))
    lengths = np.where(two_more, np.where(tenth <= 1, 10, 0), 9)
    return values, lengths


def squeezed(words: Words) -> Words:
    """Seven bits of each byte, joined."""
    values = words & _PAYLOAD
    longest = int(words.max(initial=0)).bit_length()
    for low, high, distance, bits in _JOIN:
        if longest > bits:
            values = (values & low) | ((values & high) >> distance)
    return values
