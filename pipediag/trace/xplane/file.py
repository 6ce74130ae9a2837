"""A whole XPlane file as columns of events.

The hot part, the events, is decoded into columns (`columns.py`); everything else of a line, a plane
and the file is small and goes through the protobuf library. What this reader says of a file equals
what that library parses; statistics are looked at only when they are asked for.

The file holds picoseconds since the start of the profile; both ends of an event are rounded down to
nanoseconds, which keeps nested events nested and disjoint events disjoint.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import (
    PROGRAMS_PLANE,
    SINCE_1970_NS,
    Indices,
    Line,
    Plane,
    StatValue,
    Times,
    TraceEvents,
)
from pipediag.trace.files import MalformedError, Release, TooLargeError
from pipediag.trace.xplane.columns import (
    EVENT_TAG,
    EVENTS,
    EventColumns,
    GrowingColumns,
    event_columns,
    single_event,
)
from pipediag.trace.xplane.event_names import EventNames, IntegerColumn, wrapped
from pipediag.trace.xplane.fields import LENGTH_DELIMITED, Field, Span, divided, field_at
from pipediag.trace.xplane.messages import parsed, text
from pipediag.trace.xplane.programs import programs_in
from pipediag.trace.xplane.stat_cursor import FoundStatistics, StatCursor
from pipediag.trace.xplane.stat_names import StatNames
from pipediag.trace.xplane.varints import Bytes

_BLOCK = 1 << 16
"""Events that are looked at together: few enough for their columns to stay in a cache, and enough
for threads not to spend their time on taking turns."""


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
    release: Release = field(repr=False)

    def of(self, index: int) -> dict[str, StatValue]:
        """All statistics of one event. Raises MalformedError."""
        return self.event_names.shared(int(self.name_ids[index])) | self._own(index)

    def integers(self, name: str, indices: Indices) -> IntegerColumn:
        """One statistic of many events, where it is an integer. Raises MalformedError."""
        values, present = self.event_names.shared_integers(name, self.name_ids[indices])
        for rows, found in self._own_values(name, indices):
            if isinstance(found, FoundStatistics):
                values[rows], present[rows] = found.integers, found.whole
            else:
                present[rows] = isinstance(found, int)
                values[rows] = wrapped(found) if isinstance(found, int) else 0
        return values, present

    def texts(self, name: str, indices: Indices) -> tuple[list[str], Indices]:
        """One statistic of many events, where it is a text. Raises MalformedError."""
        numbers = {"": 0}
        text_of = self.event_names.shared_texts(name, self.name_ids[indices], numbers)
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
        """The statistic where events have one of their own: for many rows of `indices` at once, or
        for a row that is not written as usual. What comes later counts."""
        keys = self.stat_names.keys(name)
        for first in range(0, len(indices) if keys else 0, _BLOCK):
            block = indices[first : first + _BLOCK]
            cursor = StatCursor(self.data, self.start[block], self.end[block])
            for rows, found in cursor.with_keys(keys):
                yield first + rows, found
            for row in cursor.odd:
                yield first + row, self.of(int(block[row])).get(name)
            self.release()

    def _numbered(self, found: FoundStatistics, numbers: dict[str, int]) -> Indices:
        """The numbers of the texts that were found; new ones are added."""
        result = np.zeros(len(found.values), np.intp)
        references, which = np.unique(
            found.values[found.refers].view(np.uint64), return_inverse=True
        )
        texts = map(self.stat_names.text, references.tolist())
        places = [numbers.setdefault(referred, len(numbers)) for referred in texts]
        result[found.refers] = np.array(places, np.intp)[which]
        for row in np.flatnonzero(found.spells).tolist():
            end = int(found.after[row])
            own = text(bytes(self.data.data[end - int(found.values[row]) : end]))
            result[row] = numbers.setdefault(own, len(numbers))
        return result

    def _own(self, index: int) -> dict[str, StatValue]:
        span = int(self.start[index]), int(self.end[index])
        try:
            return self.stat_names.decode(parsed("XEvent", self.data.data, [span]).stats)
        except MalformedError as error:
            raise MalformedError(
                f"{self.path} is damaged in the statistics of an event, between bytes {span[0]} "
                f"and {span[1]}. Record it again."
            ) from error


MOST_LINES = 1 << 16
"""Of one plane. Lines are threads and streams, and each costs time however short it is."""

LARGEST_NS = 1 << 62
"""1970 to 2116; what lies beyond is damage, and adding an event's offset to it would overflow."""

_WORTH_THREADS_BYTES = 4 << 20
_MOST_THREADS = 4
"""Each holds the columns of a line while it sorts them."""

_ENVIRONMENT, _STARTED = "Task Environment", "profile_start_time"

_PLANES = 1
_LINES, _EVENT_METADATA = 3, 4
_MOST_RUNS = 1 << 12


def parse(data: memoryview, path: Path, release: Release = lambda: None) -> TraceEvents:
    """The profile in `data`, which must stay as it is while the result is used.

    Raises:
        MalformedError: the bytes are no XPlane profile, were cut short, or claim too much.
        TooLargeError: they hold more lines or fields than any profile does.
    """
    source = _Source(path, data, release)
    [planes], rest = divided(data, 0, len(data), _PLANES)
    space = parsed("XSpace", data, rest)
    events = TraceEvents(
        path=path,
        planes=[_plane(source, part) for part in planes],
        warnings=[text(words) for words in (*space.errors, *space.warnings)],
    )
    return replace(events, epoch_ns=_epoch_ns(events))


def _epoch_ns(events: TraceEvents) -> int | None:
    """Lines count from the profile's start, which a plane of its own tells; or from 1970."""
    if events.first_ns >= SINCE_1970_NS:
        return 0
    started = (plane.stats.get(_STARTED) for plane in events.planes if plane.name == _ENVIRONMENT)
    found = next((at for at in started if isinstance(at, int)), 0)
    return found if SINCE_1970_NS <= found < LARGEST_NS else None


@dataclass(frozen=True)
class _Source:
    path: Path
    data: memoryview
    release: Release


@dataclass(frozen=True)
class _Names:
    """What the lines of a plane refer to by numbers."""

    of_events: EventNames
    of_stats: StatNames


def _plane(source: _Source, part: Field) -> Plane:
    data = source.data
    [lines, metadata], rest = divided(data, part.payload, part.end, _LINES, _EVENT_METADATA)
    if len(lines) > MOST_LINES:
        raise TooLargeError(f"a plane in it has {len(lines)} lines")
    message = parsed("XPlane", data, rest)
    stat_names = StatNames({entry.key: text(entry.value.name) for entry in message.stat_metadata})
    names = _Names(EventNames(data, metadata, stat_names), stat_names)
    name = text(message.name)
    plane = Plane(
        name,
        names.of_events.names,
        stat_names.decode(message.stats),
        programs=programs_in(names.of_events) if name == PROGRAMS_PLANE else {},
    )
    # No thread shall begin with a long one when the others are done.
    longest_first = sorted(lines, key=lambda line: line.payload - line.end)
    # Most of the work is numpy's, which lets other threads run meanwhile.
    with ThreadPoolExecutor(_threads(lines)) as threads:
        read = threads.map(lambda line: _line(source, line, plane, names), longest_first)
        by_start = dict(zip((line.start for line in longest_first), read, strict=True))
    plane.lines.extend(by_start[line.start] for line in lines)
    return plane


def _threads(lines: list[Field]) -> int:
    """One for each core, where there is enough to share out."""
    size = sum(line.end - line.payload for line in lines)
    cores = os.cpu_count() or 1
    return min(cores, _MOST_THREADS) if size > _WORTH_THREADS_BYTES else 1


def _line(source: _Source, part: Field, plane: Plane, names: _Names) -> Line:
    message, columns = _events(source, part, names.of_events)
    columns = _in_order(columns)
    start_ns, end_ns = _nanoseconds(message.timestamp_ns, columns)
    return Line(
        id=message.id,
        name=text(message.display_name) or text(message.name),
        start_ns=start_ns,
        end_ns=end_ns,
        name_ids=columns.name_ids,
        statistics=WireStatistics(
            path=source.path,
            data=np.frombuffer(source.data, np.uint8),
            start=columns.details_start,
            end=columns.details_end,
            name_ids=columns.name_ids,
            stat_names=names.of_stats,
            event_names=names.of_events,
            release=source.release,
        ),
        plane=plane,
    )


def _events(source: _Source, part: Field, names: EventNames) -> tuple[Any, EventColumns]:
    """The line without its events, and these."""
    data = source.data
    at = part.payload
    rest: list[Span] = []
    found = GrowingColumns()
    while at < part.end:
        if data[at] == EVENT_TAG:
            for columns, end in event_columns(data, at, part.end, names):
                found.add(columns)
                at = end
                source.release()
            continue
        field = field_at(data, at, part.end)
        if (field.number, field.wire_type) == (EVENTS, LENGTH_DELIMITED):
            found.add(single_event(data, field, names))
        else:
            rest.append((field.start, field.end))
        if len(rest) > _MOST_RUNS:
            raise TooLargeError(f"a line in it has more than {_MOST_RUNS} fields beside its events")
        at = field.end
    return parsed("XLine", data, rest), found.finished()


def _in_order(columns: EventColumns) -> EventColumns:
    """The events by start; of those that start together, the longest first."""
    offset_ps, length_ps = columns.offset_ps, columns.length_ps
    together = np.flatnonzero(offset_ps[1:] == offset_ps[:-1])
    # Most profilers write them in that order.
    if (offset_ps[1:] >= offset_ps[:-1]).all() and (
        length_ps[together + 1] <= length_ps[together]
    ).all():
        return columns
    order = np.argsort(offset_ps, kind="stable")
    ordered = offset_ps[order]
    same = ordered[1:] == ordered[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    among = order[tied]
    order[tied] = among[np.lexsort((-length_ps[among], offset_ps[among]))]
    return columns.taken(order)


def _nanoseconds(line_ns: int, columns: EventColumns) -> tuple[Times, Times]:
    """Starts and ends, given when the line begins."""
    if abs(line_ns) >= LARGEST_NS:
        raise MalformedError(f"a line in it claims to begin at {line_ns} ns")
    start_ns = columns.offset_ps // 1000
    past = start_ns * -1000
    past += columns.offset_ps
    # Two signed picoseconds may add up to more than 63 bits hold, but not to more than 64.
    end_ns = past.view(np.uint64)
    end_ns += columns.length_ps.view(np.uint64)
    end_ns //= np.uint64(1000)
    start_ns += line_ns
    past += start_ns
    return start_ns, past
