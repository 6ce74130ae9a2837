"""Finds one statistic of many events at once, where they lie in the file."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices
from pipediag.trace.xplane.columns import EVENT_TAG
from pipediag.trace.xplane.plain_integers import INT64, REFERENCE, UINT64, PlainIntegers
from pipediag.trace.xplane.varints import (
    PADDING,
    Bytes,
    Positions,
    Words,
    short_varints,
    tagged_varints,
    words_of,
)

_BYTE = np.uint64(0xFF)
_METADATA_ID = 0x08
_DOUBLE, _TEXT, _BYTES = 0x11, 0x2A, 0x32
_EIGHT_BITS = np.uint64(8)
_LONGEST_TEXT = np.uint64(1 << 32)
_MOST_ROUNDS = 64
"""Statistics of an event that are looked at for all events at once; the rest one by one."""


@dataclass(frozen=True)
class FoundStatistics:
    """One statistic of each of some events."""

    keys: NDArray[np.int64]
    tags: NDArray[np.uint64]
    """Of the value: what kind it is."""
    values: NDArray[np.int64]
    """An integer, the number of a text, or the length of a text that ends the statistic."""
    after: Positions
    """Where the next statistic begins."""

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Which are integers."""
        found: NDArray[np.bool_] = (self.tags == UINT64) | (self.tags == INT64)
        return found

    @property
    def integers(self) -> NDArray[np.int64]:
        """Their values; 0 where it is none."""
        return np.where(self.whole, self.values, 0)

    @property
    def refers(self) -> NDArray[np.bool_]:
        """Which are texts that the plane holds."""
        found: NDArray[np.bool_] = self.tags == REFERENCE
        return found

    @property
    def spells(self) -> NDArray[np.bool_]:
        """Which are texts that the event itself holds."""
        found: NDArray[np.bool_] = self.tags == _TEXT
        return found

    def chosen(self, keep: NDArray[np.bool_]) -> FoundStatistics:
        if keep.all():
            return self
        return FoundStatistics(
            self.keys[keep], self.tags[keep], self.values[keep], self.after[keep]
        )


def _found(plain: PlainIntegers) -> FoundStatistics:
    return FoundStatistics(plain.keys, plain.tags, plain.values, plain.after)


def _among(found: NDArray[np.int64], keys: Collection[int]) -> NDArray[np.bool_]:
    # There is one key, in every profile of today.
    among: NDArray[np.bool_] = np.logical_or.reduce([found == key for key in keys])
    return among


class StatCursor:
    """Walks the statistics of many events at once: the first of each, the second of each, …"""

    def __init__(self, data: Bytes, start: NDArray[np.uint32], end: NDArray[np.uint32]) -> None:
        self._words: Words = words_of(data)
        self._at: Positions = start.astype(np.int64)
        self._end: Positions = end.astype(np.int64)
        self.odd: list[int] = []
        """Rows that hold something else than statistics as they are usually written."""
        # What lies too near the file's end to look at whole words is parsed one by one.
        self._last = len(data) - PADDING

    def with_keys(self, keys: Collection[int]) -> Iterator[tuple[Indices, FoundStatistics]]:
        """Rows, and their statistics with one of these keys; of a row, the last one counts."""
        rows = np.flatnonzero(self._at < self._end)
        for _ in range(_MOST_ROUNDS):
            if not len(rows):
                return
            rows = self._without(rows, self._at[rows] > self._last)
            plain = PlainIntegers.at(self._words, self._at[rows], self._end[rows])
            others = rows[~plain.sound]
            rows, plain = rows[plain.sound], plain.chosen(plain.sound)
            wanted = _among(plain.keys, keys)
            if wanted.any():
                yield rows[wanted], _found(plain.chosen(wanted))
            self._at[rows] = plain.after
            if len(others):
                others, found = self._next(others)
                wanted = _among(found.keys, keys)
                if wanted.any():
                    yield others[wanted], found.chosen(wanted)
                self._at[others] = found.after
                rows = np.concatenate((rows, others))
            rows = rows[self._at[rows] < self._end[rows]]
        self.odd.extend(rows.tolist())

    def _next(self, rows: Indices) -> tuple[Indices, FoundStatistics]:
        """The next statistic of each row, whatever it holds, and the rows without the odd ones."""
        keys, tag_at, after, sound = self._heads(self._at[rows], self._end[rows])
        tags, values, end = self._values(np.where(sound, tag_at, 0))
        odd = ~sound | (end != after)
        found = FoundStatistics(keys, tags, values, after)
        return self._without(rows, odd), found.chosen(~odd)

    def _heads(
        self, at: Positions, ends: Positions
    ) -> tuple[NDArray[np.int64], Positions, Positions, NDArray[np.bool_]]:
        """Of the statistics at `at`: keys, where the values' tags are, where the statistics end,
        and whether all of that lies within the event and the file."""
        words = self._words[at]
        sizes, head = short_varints(words >> _EIGHT_BITS)
        body = at + 1 + head
        after = body + sizes.astype(np.int64)
        sound = ((words & _BYTE) == EVENT_TAG) & (head > 0) & (head < 8)
        sound &= (after <= ends) & (body <= self._last)
        key_words = self._words[np.where(sound, body, 0)]
        found, key_size = short_varints(key_words >> _EIGHT_BITS)
        tag_at = body + 1 + key_size
        sound &= ((key_words & _BYTE) == _METADATA_ID) & (key_size > 0) & (key_size < 8)
        sound &= tag_at <= self._last
        return found.view(np.int64), tag_at, after, sound

    def _values(self, tag_at: Positions) -> tuple[Words, NDArray[np.int64], Positions]:
        """The values behind these tags: the tags, the values, and where they end; -1 where one is
        odd."""
        tags, values, sizes = tagged_varints(self._words, tag_at)
        signed = values.view(np.int64)
        texts = ((tags == _TEXT) | (tags == _BYTES)) & (values < _LONGEST_TEXT)
        integers = (tags == UINT64) | (tags == INT64) | (tags == REFERENCE)
        end = tag_at + 1 + sizes
        if texts.any():
            end += np.where(texts, signed, 0)
        end[(sizes == 0) | ~(integers | texts)] = -1
        doubles = tags == _DOUBLE
        if doubles.any():
            end[doubles] = tag_at[doubles] + 9
        return tags, signed, end

    def _without(self, rows: Indices, odd: NDArray[np.bool_]) -> Indices:
        if not odd.any():
            return rows
        self.odd.extend(rows[odd].tolist())
        return rows[~odd]
