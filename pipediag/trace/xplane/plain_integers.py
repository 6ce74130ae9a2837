"""Statistics as they mostly are: a key of one byte, and an integer that takes what is left.

    0x22, length, 0x08, key, tag of the value, value

Two words show all of that: the one that begins with the statistic, with the value's first three
bytes, and the one that ends with it, with the value's last eight. No value takes more than ten.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.xplane.varints import Positions, Words, squeezed

UINT64, INT64, REFERENCE = 0x18, 0x20, 0x38
"""Tags of the values that are integers; a reference is the number of a text."""

_MASK, _PLAIN = np.uint64(0x80FF80FF), np.uint64(0x00080022)
_LENGTH_BITS, _KEY_BITS, _TAG_BITS, _VALUE_BITS = map(np.uint64, (8, 24, 32, 40))
_SEVEN_BITS, _BYTE = np.uint64(0x7F), np.uint64(0xFF)
_BEFORE_VALUE = 3
"""Bytes of the length that come before the value."""
_WORD_BYTES = 8
_MOST_BYTES = 10

_CONTINUES = 0x8080808080808080
_LAST_BYTE = 0xFF << 56
_CONTINUES_BUT_LAST = np.uint64(_CONTINUES & ~_LAST_BYTE)
_IMPOSSIBLE = 1
"""A bit that the tag of a statistic does not have."""


def _looked_at(length: int) -> tuple[int, int]:
    """For statistics of that length: bits of the first word that must all be set, and bits of the
    last word that must be set where a byte of an integer is followed by another, and else not."""
    size = length - _BEFORE_VALUE
    if not 1 <= size <= _MOST_BYTES:
        return _IMPOSSIBLE, 0
    last = _CONTINUES & ~((1 << max(64 - 8 * size, 0)) - 1)
    # Of the tenth byte only the lowest bit belongs to a number of 64 bits.
    return (
        sum(0x80 << (40 + 8 * place) for place in range(size - _WORD_BYTES)),
        last | 0xFE << 56 if size == _MOST_BYTES else last,
    )


_FIRST, _LAST = np.array([_looked_at(length) for length in range(128)], np.uint64).T.copy()
_IS_INTEGER = np.isin(np.arange(256), (UINT64, INT64, REFERENCE))


@dataclass(frozen=True)
class PlainIntegers:
    """The statistics at some positions, where they are of that form."""

    first: Words
    last: Words
    after: Positions
    """Where the next statistic begins."""
    sound: NDArray[np.bool_]
    """Which are of that form, and lie within their events."""

    @classmethod
    def at(cls, words: Words, positions: Positions, ends: Positions) -> PlainIntegers:
        """Those that begin at `positions`, in events that end at `ends`; eight bytes and more lie
        before each, and after it."""
        first = words[positions]
        lengths = _lengths(first)
        after = positions + 2
        after += lengths
        sound = (first & _MASK) == _PLAIN
        sound &= after <= ends
        sound &= _IS_INTEGER[((first >> _TAG_BITS) & _BYTE).view(np.int64)]
        last = words[np.minimum(after, ends) - _WORD_BYTES]
        needed = _FIRST[lengths]
        sound &= (first & needed) == needed
        needed = _LAST[lengths]
        sound &= (last & needed) == (needed & _CONTINUES_BUT_LAST)
        return cls(first, last, after, sound)

    @property
    def keys(self) -> NDArray[np.int64]:
        keys: NDArray[np.int64] = ((self.first >> _KEY_BITS) & _SEVEN_BITS).view(np.int64)
        return keys

    @property
    def tags(self) -> Words:
        """Of the values."""
        return (self.first >> _TAG_BITS) & _BYTE

    @property
    def values(self) -> NDArray[np.int64]:
        """Unsigned ones above 2**63 wrap."""
        sizes = _lengths(self.first) - _BEFORE_VALUE
        values = squeezed(
            self.last >> (8 * (_WORD_BYTES - np.minimum(sizes, _WORD_BYTES))).view(np.uint64)
        )
        long = np.flatnonzero(sizes > _WORD_BYTES)
        if len(long):
            more = (sizes[long] - _WORD_BYTES).view(np.uint64)
            # The first word has the one or two bytes that the last word does not show.
            shown = (np.uint64(1) << (np.uint64(8) * more)) - np.uint64(1)
            values[long] <<= np.uint64(7) * more
            values[long] |= squeezed((self.first[long] >> _VALUE_BITS) & shown)
        return values.view(np.int64)

    def chosen(self, keep: NDArray[np.bool_]) -> PlainIntegers:
        """Some of them."""
        if keep.all():
            return self
        return PlainIntegers(self.first[keep], self.last[keep], self.after[keep], self.sound[keep])


def _lengths(first: Words) -> Positions:
    lengths: Positions = ((first >> _LENGTH_BITS) & _SEVEN_BITS).view(np.int64)
    return lengths
