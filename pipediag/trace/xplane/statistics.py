"""Names and statistics of events, which stay in the file until they are asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, Statistics, StatValue
from pipediag.trace.files import MalformedError
from pipediag.trace.xplane.columns import EVENT_TAG
from pipediag.trace.xplane.protobuf import (
    PADDING,
    Bytes,
    Field,
    Positions,
    Span,
    Words,
    parsed,
    short_varints,
    tagged_varints,
    text,
    words_of,
)

_BLOCK = 1 << 16
"""Events that are read together, whose columns stay in a cache."""
_MOST_ROUNDS = 64
"""Statistics of an event that are read for all events at once; the rest go one by one."""

_METADATA_ID = 0x08
_DOUBLE, _UINT64, _INT64, _TEXT, _BYTES, _REFERENCE = 0x11, 0x18, 0x20, 0x2A, 0x32, 0x38
"""Tags of values; a reference is the number of a text."""
_BYTE, _LENGTH_BITS = np.uint64(0xFF), np.uint64(8)
_LONGEST_TEXT = np.uint64(1 << 32)
_IS_INTEGER = np.isin(np.arange(256), (_UINT64, _INT64, _REFERENCE))


class StatNames:
    """Names of a plane's statistics by key, and its texts, to which statistics refer."""

    def __init__(self, names: dict[int, str]) -> None:
        self._names = names
        self.keys = {name: key for key, name in names.items()}

    def text(self, reference: int) -> str:
        """Return the text that has that number."""
        return self._names.get(reference, "")

    def decode(self, stats: Iterable[Any]) -> dict[str, StatValue]:
        """Return parsed XStat messages by name; the last of a name counts."""
        return {self._names.get(stat.metadata_id, ""): self._value(stat) for stat in stats}

    def _value(self, stat: Any) -> StatValue:
        kind = stat.WhichOneof("value")
        if kind is None:
            return 0
        if kind == "ref_value":
            return self.text(stat.ref_value)
        value: StatValue = getattr(stat, kind)
        return text(stat.str_value) if kind == "str_value" else value


class EventNames:
    """Names of a plane's events by places from 0 on, and statistics that events of one share."""

    def __init__(self, data: memoryview, entries: list[Field], stat_names: StatNames) -> None:
        self.names: list[str] = []
        self._data = data
        self.stat_names = stat_names
        self._places: dict[int, int] = {}
        self._adding = threading.Lock()
        """Threads read lines at the same time; any line may have a key without metadata."""
        self._described: dict[int, Span] = {}
        """Places in the file of the metadata that has statistics."""
        self._decoded: dict[int, dict[str, StatValue]] = {}
        for part in entries:
            span = part.payload, part.end
            entry = parsed("EventMetadataEntry", data, [span])
            place = self._place(entry.key)
            self.names[place] = text(entry.value.name)
            self._described.pop(place, None)
            if entry.value.stats:
                self._described[place] = span

    def places(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the place of each key's name; a key without metadata gets the empty name."""
        different, inverse = _distinct(keys)
        with self._adding:
            places = [self._place(key) for key in different.tolist()]
        found: NDArray[np.int32] = np.array(places, np.int32)[inverse]
        return found

    def _place(self, key: int) -> int:
        place = self._places.setdefault(key, len(self.names))
        if place == len(self.names):
            self.names.append("")
        return place

    def shared(self, place: int) -> dict[str, StatValue]:
        """Return the statistics that all events of that name share. Raises MalformedError."""
        if place not in self._decoded and place in self._described:
            self._decoded[place] = self.described(place)
        return self._decoded.get(place, {})

    def described(self, place: int) -> dict[str, StatValue]:
        """Return them without keeping them, as a compiled program is large and needed once."""
        if place not in self._described:
            return {}
        entry = parsed("EventMetadataEntry", self._data, [self._described[place]])
        return self.stat_names.decode(entry.value.stats)

    def with_shared(self, stat: str) -> Iterator[tuple[int, StatValue]]:
        """Yield the places of all names whose events share that statistic, and its value."""
        for place in self._described:
            value = self.shared(place).get(stat)
            if value is not None:
                yield place, value


def _distinct(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], Indices]:
    """Return the different keys, sorted, and for each key its place among them."""
    largest = int(keys.max(initial=0))
    if largest > 4 * len(keys) + 1024 or int(keys.min(initial=0)) < 0:
        return np.unique(keys, return_inverse=True)
    # Keys are small numbers in all real profiles: a table is faster than sorting.
    used = np.zeros(largest + 1, np.bool_)
    used[keys] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[keys]


def _wrapped(value: int) -> int:
    """Return an unsigned value above 2**63 as the signed one that has the same bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


@dataclass(frozen=True)
class WireStatistics(Statistics):
    """Statistics of a line's events, which lie in the file."""

    path: Path
    data: Bytes = field(repr=False)
    """The whole file."""
    start: NDArray[np.uint32] = field(repr=False)
    end: NDArray[np.uint32] = field(repr=False)
    name_ids: NDArray[np.int32] = field(repr=False)
    event_names: EventNames = field(repr=False)

    def of(self, index: int) -> dict[str, StatValue]:
        """Return all statistics of one event. Raises MalformedError."""
        span = int(self.start[index]), int(self.end[index])
        try:
            own = self.event_names.stat_names.decode(parsed("XEvent", self.data.data, [span]).stats)
        except MalformedError as error:
            raise MalformedError(
                f"{self.path} is damaged in the statistics of an event, between bytes {span[0]} "
                f"and {span[1]}. Record it again."
            ) from error
        return self.event_names.shared(int(self.name_ids[index])) | own

    def integers(self, name: str, indices: Indices) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return one statistic of many events, where it is an integer. Raises MalformedError."""
        by_name = np.zeros(len(self.event_names.names), np.int64)
        shared = np.zeros(len(self.event_names.names), np.bool_)
        for place, value in self.event_names.with_shared(name):
            if isinstance(value, int):
                by_name[place], shared[place] = _wrapped(value), True
        name_ids = self.name_ids[indices]
        values, present = by_name[name_ids], shared[name_ids]
        for rows, found in self._own_values(name, indices):
            if isinstance(found, FoundStatistics):
                whole = (found.tags == _UINT64) | (found.tags == _INT64)
                values[rows], present[rows] = np.where(whole, found.values, 0), whole
            else:
                present[rows] = isinstance(found, int)
                values[rows] = _wrapped(found) if isinstance(found, int) else 0
        return values, present

    def texts(self, name: str, indices: Indices) -> tuple[list[str], Indices]:
        """Return one statistic of many events, where it is a text. Raises MalformedError."""
        numbers = {"": 0}
        by_name = np.zeros(len(self.event_names.names), np.intp)
        for place, value in self.event_names.with_shared(name):
            if isinstance(value, str):
                by_name[place] = numbers.setdefault(value, len(numbers))
        text_of = by_name[self.name_ids[indices]]
        for rows, found in self._own_values(name, indices):
            if isinstance(found, FoundStatistics):
                text_of[rows] = self._numbered(found, numbers)
            else:
                own = found if isinstance(found, str) else ""
                text_of[rows] = numbers.setdefault(own, len(numbers))
        return list(numbers), text_of

    def _own_values(
        self, name: str, indices: Indices
    ) -> Iterator[tuple[Indices, FoundStatistics] | tuple[int, StatValue | None]]:
        """Yield the events' own statistics: for many rows of `indices` at once, or for one row that
        is not written as usual. Later ones count."""
        key = self.event_names.stat_names.keys.get(name)
        for first in range(0, 0 if key is None else len(indices), _BLOCK):
            block = indices[first : first + _BLOCK]
            cursor = _StatCursor(self.data, self.start[block], self.end[block])
            for rows, found in cursor.with_key(key):
                yield first + rows, found
            for row in cursor.odd:
                yield first + row, self.of(int(block[row])).get(name)

    def _numbered(self, found: FoundStatistics, numbers: dict[str, int]) -> Indices:
        """Return the numbers of the texts that were found; new ones are added."""
        result = np.zeros(len(found.values), np.intp)
        refers = found.tags == _REFERENCE
        references, which = np.unique(found.values[refers].view(np.uint64), return_inverse=True)
        texts = map(self.event_names.stat_names.text, references.tolist())
        places = [numbers.setdefault(referred, len(numbers)) for referred in texts]
        result[refers] = np.array(places, np.intp)[which]
        for row in np.flatnonzero(found.tags == _TEXT).tolist():
            end = int(found.after[row])
            own = text(bytes(self.data.data[end - int(found.values[row]) : end]))
            result[row] = numbers.setdefault(own, len(numbers))
        return result


@dataclass(frozen=True)
class FoundStatistics:
    """One statistic of each of some events."""

    tags: NDArray[np.uint64]
    """Kind of the value."""
    values: NDArray[np.int64]
    """An integer, the number of a text, or the length of a text that ends the statistic."""
    after: Positions
    """Place at which the next statistic begins."""

    def chosen(self, keep: NDArray[np.bool_]) -> FoundStatistics:
        if keep.all():
            return self
        return FoundStatistics(self.tags[keep], self.values[keep], self.after[keep])


class _StatCursor:
    """Walks the statistics of many events at once: the first of each, the second of each, …"""

    def __init__(self, data: Bytes, start: NDArray[np.uint32], end: NDArray[np.uint32]) -> None:
        self._words: Words = words_of(data)
        self._at: Positions = start.astype(np.int64)
        self._end: Positions = end.astype(np.int64)
        self.odd: list[int] = []
        """Rows that contain something else than statistics as they are usually written."""
        # Too near the file's end there are no whole words: such statistics are parsed one by one.
        self._last = len(data) - PADDING

    def with_key(self, key: int | None) -> Iterator[tuple[Indices, FoundStatistics]]:
        """Yield rows, and their statistics with that key; a row's last one counts."""
        rows = np.flatnonzero(self._at < self._end)
        for _ in range(_MOST_ROUNDS):
            if not len(rows):
                return
            rows, their_keys, found = self._next(self._without(rows, self._at[rows] > self._last))
            wanted = their_keys == key
            if wanted.any():
                yield rows[wanted], found.chosen(wanted)
            self._at[rows] = found.after
            rows = rows[self._at[rows] < self._end[rows]]
        self.odd.extend(rows.tolist())

    def _next(self, rows: Indices) -> tuple[Indices, NDArray[np.int64], FoundStatistics]:
        """Return the rows without odd ones, and the next statistic of each in any usual form."""
        keys, tag_at, after, sound = self._heads(self._at[rows], self._end[rows])
        tags, values, end = self._values(np.where(sound, tag_at, 0))
        odd = ~sound | (end != after)
        found = FoundStatistics(tags, values, after)
        return self._without(rows, odd), keys[~odd], found.chosen(~odd)

    def _heads(
        self, at: Positions, ends: Positions
    ) -> tuple[NDArray[np.int64], Positions, Positions, NDArray[np.bool_]]:
        """Return keys, positions of the values' tags, and the ends of the statistics at `at`, and
        where all of that lies within the event and the file."""
        words = self._words[at]
        sizes, head = short_varints(words >> _LENGTH_BITS)
        body = at + 1 + head
        after = body + sizes.astype(np.int64)
        sound = ((words & _BYTE) == EVENT_TAG) & (head > 0) & (head < 8)
        sound &= (after <= ends) & (body <= self._last)
        key_words = self._words[np.where(sound, body, 0)]
        found, key_size = short_varints(key_words >> _LENGTH_BITS)
        tag_at = body + 1 + key_size
        sound &= ((key_words & _BYTE) == _METADATA_ID) & (key_size > 0) & (key_size < 8)
        sound &= tag_at <= self._last
        return found.view(np.int64), tag_at, after, sound

    def _values(self, tag_at: Positions) -> tuple[Words, NDArray[np.int64], Positions]:
        """Return the tags at these positions, the values, and where they end; -1 for odd ones."""
        tags, values, sizes = tagged_varints(self._words, tag_at)
        signed = values.view(np.int64)
        texts = ((tags == _TEXT) | (tags == _BYTES)) & (values < _LONGEST_TEXT)
        end = tag_at + 1 + sizes
        if texts.any():
            end += np.where(texts, signed, 0)
        end[(sizes == 0) | ~(_IS_INTEGER[tags.view(np.int64)] | texts)] = -1
        doubles = tags == _DOUBLE
        if doubles.any():
            end[doubles] = tag_at[doubles] + 9
        return tags, signed, end

    def _without(self, rows: Indices, odd: NDArray[np.bool_]) -> Indices:
        if not odd.any():
            return rows
        self.odd.extend(rows[odd].tolist())
        return rows[~odd]
