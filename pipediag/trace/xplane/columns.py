"""The events of a line as columns, decoded from the wire many at a time.

A line holds its events one after the other, each behind the tag 0x22 and its length. Finding where
each begins means following a chain of lengths, which numpy can't do. So every place that looks
like the beginning of an event is taken for one, and the chain is then checked: where each guess
ends at the next guess, all of them were right. Python follows the chain by itself only across the
few places where that fails; where they are many, with a table of where each tag leads.

An event is decoded here when its fields stand in the order of their numbers, as every protobuf
writer puts them. The parser of the protobuf library decodes the others, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.files import MalformedError
from pipediag.trace.xplane.event_names import EventNames
from pipediag.trace.xplane.fields import Field, field_at, varint_at
from pipediag.trace.xplane.messages import parsed
from pipediag.trace.xplane.varints import (
    PADDING,
    Positions,
    Words,
    short_varints,
    tagged_varints,
    words_of,
)

EVENTS = 4
EVENT_TAG = 0x22
"""Field 4 of XLine, length-delimited; field 4 of XEvent (its statistics) looks the same."""

_CHUNK_BYTES = 1 << 21
_FIRST_CHUNK_BYTES = 1 << 16
_MANY_PIECES = 64
"""Of a chunk. A run of guesses that were right is one piece, and so is an event that none met."""
_GROWTH = 1.25
_MOST_ROUNDS = 64
"""Fields of an event that are looked at for all events at once; those with more go one by one."""

_METADATA_ID, _OFFSET, _DURATION, _OCCURRENCES = 0x08, 0x10, 0x18, 0x28

# An event's first bytes: tag 0x08, the name's id in one to three bytes, and the tag of the offset.
# Statistics begin in the same way, but have no field 2 that is an integer.
_BEGINNINGS = tuple(
    (np.uint64(mask), np.uint64(value))
    for mask, value in (
        (0xFF80FF, 0x100008),
        (0xFF8080FF, 0x10008008),
        (0xFF808080FF, 0x1000808008),
    )
)
# Where the offset's tag may stand from the event's on: between them are a length of one or two
# bytes, the tag of the name's id, and that id.
_OFFSET_PLACES = range(4, 8)
_BYTE = np.uint64(0xFF)
# A statistic's tag, and a length of one byte behind it.
_PLAIN_MASK, _SEVEN_BITS = np.uint64(0x80FF), np.uint64(0x7F)
# In the word that begins with an event's tag: the bits that say that its length takes two bytes,
# or more.
_LONG, _LONGER = np.uint64(0x8000), np.uint64(0x800000)


@dataclass(frozen=True)
class EventColumns:
    """Events in the order of the file."""

    name_ids: NDArray[np.int32]
    """The places of their names."""
    offset_ps: NDArray[np.int64]
    length_ps: NDArray[np.int64]
    """At least 0."""
    details_start: NDArray[np.uint32]
    """Where in the file the fields begin that are not columns here: the statistics."""
    details_end: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.name_ids)

    def taken(self, order: Positions) -> EventColumns:
        """The events in that order."""
        return EventColumns(*(getattr(self, name)[order] for name in _COLUMNS))


_COLUMNS = tuple(EventColumns.__dataclass_fields__)


class GrowingColumns:
    """A line's events while they are read.

    Each column is one allocation, which the system moves without copying where it is large. Pieces
    that are joined at the end would leave as much memory behind as the columns take.
    """

    def __init__(self) -> None:
        self._count = 0
        self._columns = {name: np.empty_like(getattr(_EMPTY, name)) for name in _COLUMNS}

    def add(self, piece: EventColumns) -> None:
        """Appends events."""
        end = self._count + len(piece)
        for name, column in self._columns.items():
            if end > len(column):
                column.resize(max(end, int(len(column) * _GROWTH)), refcheck=False)
            column[self._count : end] = getattr(piece, name)
        self._count = end

    def finished(self) -> EventColumns:
        """All events."""
        for column in self._columns.values():
            column.resize(self._count, refcheck=False)
        return EventColumns(**self._columns)


def event_columns(
    data: memoryview, start: int, end: int, names: EventNames
) -> Iterator[tuple[EventColumns, int]]:
    """The run of events from `start`, where the first one's tag is, in pieces.

    Yields each piece and where it ends; the last one ends at `end` or at another field.

    Raises:
        MalformedError: an event reaches over the end of its line, or is none.
    """
    # A run may be one event long, between other fields: the effort grows with what it turns out.
    size = _FIRST_CHUNK_BYTES
    while start < end and data[start] == EVENT_TAG:
        size = min(size, _CHUNK_BYTES)
        chunk = _Chunk(data, start, min(end, start + size))
        begins, ends = chunk.events()
        if len(begins):
            columns = chunk.decode(begins, ends, names)
            start += int(ends[-1])
            size *= 2
        else:
            field = field_at(data, start, end)
            columns = single_event(data, field, names)
            start = field.end
        yield columns, start


def single_event(data: memoryview, field: Field, names: EventNames) -> EventColumns:
    """The columns of one event, however long it is. Raises MalformedError."""
    key, *times = (np.array([value]) for value in _decoded(data, field.payload, field.end))
    place = (np.array([at], np.uint32) for at in (field.payload, field.end))
    return EventColumns(names.places(key), *times, *place)


def _decoded(data: memoryview, start: int, end: int) -> tuple[int, int, int]:
    """By the protobuf library: the name's key, offset and length in picoseconds."""
    event = parsed("XEventTimes", data, [(start, end)])
    return event.metadata_id, event.offset_ps, max(event.duration_ps, 0)


class _Chunk:
    """A part of a line that begins with an event's tag; positions count from its beginning."""

    def __init__(self, data: memoryview, start: int, end: int) -> None:
        self._start = start
        self._size = end - start
        padded = np.empty(self._size + PADDING, np.uint8)
        padded[: self._size] = data[start:end]
        padded[self._size :] = 0
        self._bytes = padded
        self._words = words_of(padded)

    def events(self) -> tuple[Positions, Positions]:
        """Where the payload of each event that lies wholly in the chunk begins and ends."""
        tags, begins, ends = self._guesses()
        broken = np.flatnonzero(np.append(ends[:-1] != tags[1:], True))
        found: list[tuple[Positions, Positions]] = []
        at = 0
        while at < self._size and self._bytes[at] == EVENT_TAG:
            first = int(np.searchsorted(tags, at))
            if len(found) >= _MANY_PIECES:
                piece = self._followed(at)
            elif first < len(tags) and tags[first] == at:
                last = int(broken[np.searchsorted(broken, first)]) + 1
                piece = begins[first:last], ends[first:last]
            else:
                piece = self._one_event(at)
            at = int(piece[1][-1])
            if at > self._size:
                found.append((piece[0][:-1], piece[1][:-1]))
                break
            found.append(piece)
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.concatenate([b for b, _ in found]), np.concatenate([e for _, e in found])

    def _guesses(self) -> tuple[Positions, Positions, Positions]:
        """Every place that looks like an event's tag: the tag, the payload's beginning and end."""
        tags = self._likely_tags()
        words = self._words[tags]
        # Two bytes hold lengths up to 16383; what is longer is left to the chain.
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

    def _likely_tags(self) -> Positions:
        """Where an event's tag may be, by single bytes, of which many are compared at once."""
        offsets = self._bytes == _OFFSET
        near = np.zeros(self._size, np.bool_)
        for place in _OFFSET_PLACES:
            near |= offsets[place : place + self._size]
        return np.flatnonzero(near & (self._bytes[: self._size] == EVENT_TAG))

    def _followed(self, at: int) -> tuple[Positions, Positions]:
        """The events from `at` on, by the table of where each tag leads."""
        tags, begins, ends, next_tags = self._every_tag
        place = int(np.searchsorted(tags, at))
        if place == len(tags) or tags[place] != at:
            return self._one_event(at)
        chain = []
        while place >= 0:
            chain.append(place)
            place = next_tags[place]
        return begins[chain], ends[chain]

    @cached_property
    def _every_tag(self) -> tuple[Positions, Positions, Positions, memoryview]:
        """Every byte that may be an event's tag: where it is, where the event's payload begins and
        ends, and the place of the tag at that end, or -1."""
        tags = np.flatnonzero(self._bytes[: self._size] == EVENT_TAG)
        lengths, sizes = short_varints(self._words[tags] >> np.uint64(8))
        # A word shifted by a byte shows seven of them.
        whole = (sizes > 0) & (sizes < 8)
        tags, begins = tags[whole], (tags + 1 + sizes)[whole]
        inside = np.minimum(lengths[whole], np.uint64(self._size)).view(np.int64)
        ends = np.minimum(begins + inside, self._size + 1)
        following = np.searchsorted(tags, ends)
        meets = tags[np.minimum(following, len(tags) - 1)] == ends
        return tags, begins, ends, np.where(meets, following, -1).data

    def _one_event(self, at: int) -> tuple[Positions, Positions]:
        try:
            length, begin = varint_at(self._bytes.data, at + 1, self._size)
        except MalformedError:
            # The length itself is cut: by the chunk's end, or it is none.
            length, begin = self._size, at + 1
        # All that matters of an end outside the chunk is that it lies there.
        return np.array([begin]), np.array([min(begin + length, self._size + 1)])

    def decode(self, begins: Positions, ends: Positions, names: EventNames) -> EventColumns:
        """The columns of these events."""
        keys, at, sound = self._scalar(_METADATA_ID, begins, ends)
        offset_ps, at, fine = self._scalar(_OFFSET, at, ends)
        sound &= fine
        length_ps, at, fine = self._scalar(_DURATION, at, ends)
        sound &= fine & self._only_details(at, ends)
        details = np.where(sound, at, begins)
        for index in np.flatnonzero(~sound).tolist():
            values = _decoded(self._bytes.data, int(begins[index]), int(ends[index]))
            keys[index], offset_ps[index], length_ps[index] = values
        return EventColumns(
            names.places(keys),
            offset_ps,
            np.maximum(length_ps, 0),
            (details + self._start).astype(np.uint32),
            (ends + self._start).astype(np.uint32),
        )

    def _scalar(
        self, tag: int, at: Positions, ends: Positions
    ) -> tuple[NDArray[np.int64], Positions, NDArray[np.bool_]]:
        """An integer field where it stands next: value, position after it, and whether it ends."""
        tags, values, lengths = tagged_varints(self._words, at)
        present = (tags == tag) & (at < ends)
        after = np.where(present, at + 1 + lengths, at)
        sound = ~present | ((lengths > 0) & (after <= ends))
        return np.where(present, values.view(np.int64), 0), np.minimum(after, ends), sound

    def _only_details(self, at: Positions, ends: Positions) -> NDArray[np.bool_]:
        """Whether nothing but statistics, and a count, lies between these positions."""
        sound = at <= ends
        rest = np.flatnonzero(at < ends)
        at, ends = at[rest], ends[rest]
        for _ in range(_MOST_ROUNDS):
            if not len(rest):
                return sound
            words: Words = self._words[at]
            after = at + 2 + ((words >> np.uint64(8)) & _SEVEN_BITS).view(np.int64)
            others = np.flatnonzero((words & _PLAIN_MASK) != EVENT_TAG)
            if len(others):
                after[others] = self._after_detail(at[others], words[others])
            good = after <= ends
            sound[rest[~good]] = False
            going_on = np.flatnonzero(good & (after < ends))
            rest, at, ends = rest[going_on], after[going_on], ends[going_on]
        sound[rest] = False
        return sound

    def _after_detail(self, at: Positions, words: Words) -> Positions:
        """Where a statistic, or a count, ends; beyond the chunk where it is neither."""
        tags = words & _BYTE
        values, sizes = short_varints(words >> np.uint64(8))
        # A word shifted by a byte shows seven of them; lengths and counts take no more.
        known = ((tags == EVENT_TAG) | (tags == _OCCURRENCES)) & (sizes > 0) & (sizes < 8)
        inside = np.where(tags == EVENT_TAG, values, np.uint64(0))
        known &= inside < np.uint64(1 << 32)
        after = at + 1 + sizes + np.where(known, inside, np.uint64(0)).astype(np.int64)
        return np.where(known, after, self._size + 1)


_NONE = np.empty(0, np.int64)
_EMPTY = EventColumns(
    _NONE.astype(np.int32), _NONE, _NONE, _NONE.astype(np.uint32), _NONE.astype(np.uint32)
)
