"""The statistics of a line's events, decoded from the file when they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, StatValue
from pipediag.trace.malformed import MalformedError
from pipediag.trace.xplane.columns import EVENT_TAG
from pipediag.trace.xplane.event_names import EventNames, IntegerColumn, wrapped
from pipediag.trace.xplane.messages import parsed
from pipediag.trace.xplane.stat_names import StatNames
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
_DOUBLE, _UINT64, _INT64, _TEXT, _BYTES, _REFERENCE = 0x11, 0x18, 0x20, 0x2A, 0x32, 0x38
_LONGEST_TEXT = np.uint64(1 << 32)
_BLOCK = 1 << 14
"""Events that are looked at together: their columns stay in a core's own cache."""
_MOST_ROUNDS = 64
"""Statistics of an event that are looked at for all events at once; the rest one by one."""


@dataclass(frozen=True)
class WireStatistics:
    """Statistics that lie in the file still, event by event."""

    path: Path
    data: Bytes = field(repr=False)
    """The whole file."""
    start: NDArray[np.uint32] = field(repr=False)
    end: NDArray[np.uint32] = field(repr=False)
    name_ids: NDArray[np.int32] = field(repr=False)
    """The places of the events' names."""
    stat_names: StatNames = field(repr=False)
    event_names: EventNames = field(repr=False)

    def of(self, index: int) -> dict[str, StatValue]:
        """All statistics of one event. Raises MalformedError."""
        return self.event_names.shared(int(self.name_ids[index])) | self._own(index)

    def integers(self, name: str, indices: Indices) -> IntegerColumn:
        """One statistic of many events, where it is an integer. Raises MalformedError."""
        values, present = self.event_names.shared_integers(name, self.name_ids[indices])
        keys = self.stat_names.keys(name)
        if keys:
            for first in range(0, len(indices), _BLOCK):
                block = slice(first, first + _BLOCK)
                self._own_integers(name, keys, indices[block], (values[block], present[block]))
        return values, present

    def _own_integers(
        self, name: str, keys: Collection[int], indices: Indices, found: IntegerColumn
    ) -> None:
        """Writes the statistic of the events that have one of their own."""
        values, present = found
        cursor = _Cursor(self.data, self.start[indices], self.end[indices])
        for rows, integers, whole in cursor.values_of(keys):
            values[rows], present[rows] = integers, whole
        for row in cursor.odd:
            value = self.of(int(indices[row])).get(name)
            present[row] = isinstance(value, int)
            values[row] = wrapped(value) if isinstance(value, int) else 0

    def _own(self, index: int) -> dict[str, StatValue]:
        span = int(self.start[index]), int(self.end[index])
        try:
            return self.stat_names.decode(parsed("XEvent", self.data.data, [span]).stats)
        except MalformedError as error:
            raise MalformedError(
                f"{self.path} is damaged in the statistics of an event, between bytes {span[0]} "
                f"and {span[1]}. Record it again."
            ) from error


@dataclass(frozen=True)
class _Found:
    """One statistic of each of some events."""

    keys: NDArray[np.int64]
    values: NDArray[np.int64]
    """0 where it is no integer."""
    whole: NDArray[np.bool_]
    after: Positions
    """Where the next statistic begins."""

    def chosen(self, keep: NDArray[np.bool_]) -> _Found:
        return _Found(self.keys[keep], self.values[keep], self.whole[keep], self.after[keep])


class _Cursor:
    """Walks the statistics of many events at once: the first of each, the second of each, …"""

    def __init__(self, data: Bytes, start: NDArray[np.uint32], end: NDArray[np.uint32]) -> None:
        self._words: Words = words_of(data)
        self._at: Positions = start.astype(np.int64)
        self._end: Positions = end.astype(np.int64)
        self.odd: list[int] = []
        """Rows that hold something else than statistics as they are usually written."""
        # What lies too near the file's end to look at whole words is parsed one by one.
        self._last = len(data) - PADDING

    def values_of(
        self, keys: Collection[int]
    ) -> Iterator[tuple[Indices, NDArray[np.int64], NDArray[np.bool_]]]:
        """Rows, values, and whether they are integers, of the statistics with one of these keys."""
        wanted_keys = np.array(list(keys), np.int64)
        rows = np.flatnonzero(self._at < self._end)
        for _ in range(_MOST_ROUNDS):
            if not len(rows):
                return
            rows, found = self._next(rows)
            wanted = np.isin(found.keys, wanted_keys)
            yield rows[wanted], found.values[wanted], found.whole[wanted]
            self._at[rows] = found.after
            rows = rows[found.after < self._end[rows]]
        self.odd.extend(rows.tolist())

    def _next(self, rows: Indices) -> tuple[Indices, _Found]:
        """The next statistic of each row, and the rows without the odd ones."""
        rows = self._without(rows, self._at[rows] > self._last)
        at = self._at[rows]
        words = self._words[at]
        sizes, head = short_varints(words >> np.uint64(8))
        body = at + 1 + head
        after = body + sizes.astype(np.int64)
        odd = (words & _BYTE) != EVENT_TAG
        odd |= (head == 0) | (head >= 8) | (after > self._end[rows]) | (body > self._last)
        key_words = self._words[np.where(odd, 0, body)]
        keys, key_size = short_varints(key_words >> np.uint64(8))
        place = body + 1 + key_size
        odd |= ((key_words & _BYTE) != _METADATA_ID) | (key_size == 0) | (key_size >= 8)
        odd |= place > self._last
        values, whole, end = self._values(np.where(odd, 0, place))
        odd |= end != after
        found = _Found(keys.view(np.int64), values, whole, after)
        return self._without(rows, odd), found.chosen(~odd) if odd.any() else found

    def _values(self, place: Positions) -> tuple[NDArray[np.int64], NDArray[np.bool_], Positions]:
        """A statistic's value where its tag is at `place`: its value if it is an integer, whether
        it is, and where it ends; -1 where it is odd."""
        tags, values, sizes = tagged_varints(self._words, place)
        signed = values.view(np.int64)
        whole = (tags == _UINT64) | (tags == _INT64)
        texts = ((tags == _TEXT) | (tags == _BYTES)) & (values < _LONGEST_TEXT)
        end = place + 1 + sizes + np.where(texts, signed, 0)
        end[(sizes == 0) | ~(whole | texts | (tags == _REFERENCE))] = -1
        doubles = tags == _DOUBLE
        end[doubles] = place[doubles] + 9
        return np.where(whole, signed, 0), whole, end

    def _without(self, rows: Indices, odd: NDArray[np.bool_]) -> Indices:
        if not odd.any():
            return rows
        self.odd.extend(rows[odd].tolist())
        return rows[~odd]
