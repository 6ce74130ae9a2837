"""Columns of a line's events, decoded from the wire many at a time.

A line holds its events one after the other, each behind the tag 0x22 and its length. numpy cannot
follow a chain of lengths. So every place that looks like the beginning of an event is taken for
one, and where each guess ends at the next guess, all of them were right. Python follows the chain
by itself only where that fails.

Fields of an event are taken to stand in the order of their numbers, as every protobuf writer puts
them. An event that does not begin so is decoded by the protobuf library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.xplane.protobuf import (
    PADDING,
    Field,
    Positions,
    field_at,
    parsed,
    tagged_varints,
    words_of,
)

EVENT_TAG = 0x22
"""Field 4 of XLine, length-delimited; field 4 of XEvent (its statistics) has the same tag."""

_CHUNK_BYTES = 1 << 21
_FIRST_CHUNK_BYTES = 1 << 16

_METADATA_ID, _OFFSET, _DURATION = 0x08, 0x10, 0x18

# First bytes of an event: tag 0x08, the name's id in one to three bytes, and the tag of the offset.
# Statistics begin in the same way, but have no field 2 that is an integer.
_BEGINNINGS = tuple(
    (np.uint64(mask), np.uint64(value))
    for mask, value in (
        (0xFF80FF, 0x100008),
        (0xFF8080FF, 0x10008008),
        (0xFF808080FF, 0x1000808008),
    )
)
# Bits of the word that begins with an event's tag: its length takes two bytes, or more.
_LONG, _LONGER = np.uint64(0x8000), np.uint64(0x800000)

Places = Callable[[NDArray[np.int64]], NDArray[np.int32]]
"""Converts the keys that events give to places of names."""


class EventColumns(NamedTuple):
    """Events in the order of the file."""

    name_ids: NDArray[np.int32]
    """Places of their names."""
    offset_ps: NDArray[np.int64]
    length_ps: NDArray[np.int64]
    """Length of each event, at least 0."""
    details_start: NDArray[np.uint32]
    """Places in the file at which the statistics begin."""
    details_end: NDArray[np.uint32]

    @classmethod
    def joined(cls, pieces: Iterable[EventColumns]) -> EventColumns:
        """Return the events of all pieces."""
        return cls._make(map(np.concatenate, zip(_NO_EVENTS, *pieces, strict=True)))


_NO_EVENTS = EventColumns._make(np.empty(0, dtype) for dtype in ("i4", "i8", "i8", "u4", "u4"))


def event_columns(
    data: memoryview, start: int, end: int, places: Places
) -> Iterator[tuple[EventColumns, int]]:
    """Yield the run of events from `start` on, where the first tag is, in pieces, and their ends.

    The last piece ends at `end` or at another field.

    Raises MalformedError: an event is damaged, or longer than its line.
    """
    # A run may be one event between other fields: chunks grow with what was found.
    size = _FIRST_CHUNK_BYTES
    while start < end and data[start] == EVENT_TAG:
        size = min(size, _CHUNK_BYTES)
        chunk = _Chunk(data, start, min(end, start + size))
        begins, ends = chunk.events()
        if len(begins):
            columns = chunk.decode(begins, ends, places)
            start += int(ends[-1])
            size *= 2
        else:
            field = field_at(data, start, end)
            columns = single_event(data, field, places)
            start = field.end
        yield columns, start


def single_event(data: memoryview, field: Field, places: Places) -> EventColumns:
    """Decode one event, however long it is. Raises MalformedError."""
    key, *times = (np.array([value]) for value in _decoded(data, field.payload, field.end))
    details = (np.array([at], np.uint32) for at in (field.payload, field.end))
    return EventColumns(places(key), *times, *details)


def _decoded(data: memoryview, start: int, end: int) -> tuple[int, int, int]:
    """Return the name's key, offset and length in picoseconds, by the protobuf library."""
    event = parsed("XEventTimes", data, [(start, end)])
    return event.metadata_id, event.offset_ps, max(event.duration_ps, 0)


class _Chunk:
    """Part of a line that begins with an event's tag; positions count from its beginning."""

    def __init__(self, data: memoryview, start: int, end: int) -> None:
        self._start = start
        self._size = end - start
        padded = np.empty(self._size + PADDING, np.uint8)
        padded[: self._size] = data[start:end]
        padded[self._size :] = 0
        self._bytes = padded
        self._words = words_of(padded)

    def events(self) -> tuple[Positions, Positions]:
        """Find where the payload of each event begins and ends, up to one that is no right guess.

        None of them reaches beyond the chunk.
        """
        tags, begins, ends = self._guesses()
        broken = np.flatnonzero(np.append(ends[:-1] != tags[1:], True))
        found = [np.empty(0, np.intp)]
        at = 0
        while (first := int(np.searchsorted(tags, at))) < len(tags) and tags[first] == at:
            last = int(broken[np.searchsorted(broken, first)]) + 1
            found.append(np.arange(first, last))
            at = int(ends[last - 1])
        chosen = np.concatenate(found)
        chosen = chosen[ends[chosen] <= self._size]
        return begins[chosen], ends[chosen]

    def _guesses(self) -> tuple[Positions, Positions, Positions]:
        """Find places that look like an event's tag: the tag, the payload's beginning and end."""
        tags = np.flatnonzero(self._bytes[: self._size] == EVENT_TAG)
        words = self._words[tags]
        # Two bytes hold lengths up to 16383; longer events are no guesses.
        two = (words & _LONG) != 0
        body = np.where(two, words >> np.uint64(24), words >> np.uint64(16))
        alike = ~two | ((words & _LONGER) == 0)
        matching = np.zeros(len(tags), np.bool_)
        for mask, value in _BEGINNINGS:
            matching |= (body & mask) == value
        alike &= matching
        likely = np.flatnonzero(alike)
        tags, words, two = tags[likely], words[likely].view(np.int64), two[likely]
        lengths = ((words >> 8) & 0x7F) | np.where(two, (words >> 9) & 0x3F80, 0)
        begins = tags + np.where(two, 3, 2)
        return tags, begins, begins + lengths

    def decode(self, begins: Positions, ends: Positions, places: Places) -> EventColumns:
        """Decode these events."""
        keys, at, sound = self._scalar(_METADATA_ID, begins, ends)
        offset_ps, at, fine = self._scalar(_OFFSET, at, ends)
        sound &= fine
        length_ps, at, fine = self._scalar(_DURATION, at, ends)
        sound &= fine & (at <= ends)
        details = np.where(sound, at, begins)
        for index in np.flatnonzero(~sound).tolist():
            values = _decoded(self._bytes.data, int(begins[index]), int(ends[index]))
            keys[index], offset_ps[index], length_ps[index] = values
        return EventColumns(
            places(keys),
            offset_ps,
            np.maximum(length_ps, 0),
            (details + self._start).astype(np.uint32),
            (ends + self._start).astype(np.uint32),
        )

    def _scalar(
        self, tag: int, at: Positions, ends: Positions
    ) -> tuple[NDArray[np.int64], Positions, NDArray[np.bool_]]:
        """Decode an integer field that may be next: value, position after it, and soundness."""
        tags, values, lengths = tagged_varints(self._words, at)
        present = (tags == tag) & (at < ends)
        after = np.where(present, at + 1 + lengths, at)
        sound = ~present | ((lengths > 0) & (after <= ends))
        return np.where(present, values.view(np.int64), 0), np.minimum(after, ends), sound
