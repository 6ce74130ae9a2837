"""XPlane files as columns of events.

Both ends of an event, in picoseconds since the start of the profile, are rounded down to
nanoseconds, which keeps nested events nested and disjoint events disjoint. Statistics are read
from the parsed messages when they are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
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
    Statistics,
    StatValue,
    TraceEvents,
)
from pipediag.trace.files import MalformedError
from pipediag.trace.xplane.programs import programs_in
from pipediag.trace.xplane.protobuf import parsed, text

LARGEST_NS = 1 << 62
"""1970 to 2116; a later time is damage, and adding an event's offset to it would overflow."""

_ENVIRONMENT, _STARTED = "Task Environment", "profile_start_time"


def parse(data: bytes, path: Path) -> TraceEvents:
    """Read a profile. Raises MalformedError where the bytes are no XPlane profile, were cut short,
    or have impossible times."""
    space = parsed("XSpace", data)
    events = TraceEvents(
        path=path,
        format="xplane",
        planes=[_plane(message) for message in space.planes],
        warnings=[text(words) for words in (*space.errors, *space.warnings)],
    )
    return replace(events, epoch_ns=_epoch_ns(events))


def _epoch_ns(events: TraceEvents) -> int | None:
    """Lines count from 1970, or from the profile's start, which one plane may give."""
    if events.first_ns >= SINCE_1970_NS:
        return 0
    started = (plane.stats.get(_STARTED) for plane in events.planes if plane.name == _ENVIRONMENT)
    found = next((at for at in started if isinstance(at, int)), 0)
    return found if SINCE_1970_NS <= found < LARGEST_NS else None


def _plane(message: Any) -> Plane:
    stat_names = _StatNames(message.stat_metadata)
    described = {entry.key: entry.value for entry in message.event_metadata}
    name = text(message.name)
    plane = Plane(
        name,
        # The last name is that of events whose key has no metadata.
        [*(text(one.name) for one in described.values()), ""],
        stat_names.decode(message.stats),
        programs=programs_in(described.values()) if name == PROGRAMS_PLANE else {},
    )
    places = {key: place for place, key in enumerate(described)}
    shared = {
        places[key]: stat_names.decode(one.stats)
        for key, one in (described.items() if message.lines else ())
        if one.stats
    }
    plane.lines.extend(_line(line, plane, places, stat_names, shared) for line in message.lines)
    return plane


def _line(
    message: Any,
    plane: Plane,
    places: dict[int, int],
    stat_names: _StatNames,
    shared: dict[int, dict[str, StatValue]],
) -> Line:
    if abs(message.timestamp_ns) >= LARGEST_NS:
        raise MalformedError(f"a line in it claims to begin at {message.timestamp_ns} ns")
    events = message.events
    columns = np.fromiter(
        (n for one in events for n in (one.metadata_id, one.offset_ps, one.duration_ps)),
        np.int64,
        3 * len(events),
    )
    keys, offset_ps, length_ps = columns.reshape(-1, 3).T
    length_ps = np.maximum(length_ps, 0)
    order = np.lexsort((-length_ps, offset_ps))
    offset_ps, length_ps = offset_ps[order], length_ps[order]
    start_ns = message.timestamp_ns + offset_ps // 1000
    different, which = np.unique(keys[order], return_inverse=True)
    found = [places.get(key, len(places)) for key in different.tolist()]
    name_ids = np.array(found, np.int32)[which]
    return Line(
        id=message.id,
        name=text(message.display_name) or text(message.name),
        start_ns=start_ns,
        # Added up as picoseconds, the two could overflow.
        end_ns=start_ns + length_ps // 1000 + (offset_ps % 1000 + length_ps % 1000) // 1000,
        name_ids=name_ids,
        statistics=_EventStatistics(events, order, name_ids, stat_names, shared),
        plane=plane,
    )


class _StatNames:
    """Names of a plane's statistics by key, and its texts, to which statistics refer."""

    def __init__(self, entries: Iterable[Any]) -> None:
        self._names = {entry.key: text(entry.value.name) for entry in entries}

    def keys(self, name: str) -> Collection[int]:
        """Return the keys under which a statistic of that name is written."""
        return {key for key, known in self._names.items() if known == name}

    def decode(self, stats: Iterable[Any]) -> dict[str, StatValue]:
        """Return XStat messages by name; the last of a name counts."""
        return {self._names.get(stat.metadata_id, ""): self.value(stat) for stat in stats}

    def value(self, stat: Any) -> StatValue:
        """Return the value of one XStat message, with the text that it refers to."""
        kind = stat.WhichOneof("value")
        if kind is None:
            return 0
        value: StatValue = getattr(stat, kind)
        if kind == "ref_value":
            return self._names.get(stat.ref_value, "")
        return text(stat.str_value) if kind == "str_value" else value


@dataclass(frozen=True)
class _EventStatistics(Statistics):
    """An event's own come before those of its name."""

    events: Any = field(repr=False)
    """XEvent messages, in the order of the file."""
    order: Indices = field(repr=False)
    """The place of each event of the line among them."""
    name_ids: NDArray[np.int32] = field(repr=False)
    stat_names: _StatNames = field(repr=False)
    shared: dict[int, dict[str, StatValue]] = field(repr=False)
    """Statistics that all events of one name share, by the name's place."""

    def of(self, index: int) -> dict[str, StatValue]:
        own = self.stat_names.decode(self.events[int(self.order[index])].stats)
        return self.shared.get(int(self.name_ids[index]), {}) | own

    def values(self, name: str, indices: Indices) -> list[StatValue | None]:
        shared = {place: stats[name] for place, stats in self.shared.items() if name in stats}
        found = [shared.get(place) for place in self.name_ids[indices].tolist()]
        keys = self.stat_names.keys(name)
        for row, place in enumerate(self.order[indices].tolist() if keys else ()):
            for stat in self.events[place].stats:
                if stat.metadata_id in keys:
                    found[row] = self.stat_names.value(stat)
        return found
