"""A profile as columns of events, whatever kind of file it came from.

Times are nanoseconds (int64) on one clock for the whole profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SINCE_1970_NS = 10**18
"""No time that counts from a profile's or a machine's start is as large, and none since 2001 that
counts from 1970 is smaller."""

_FIRST_LOOK = 1 << 12
"""Events in which most lines show all their names."""

HOST_PLANE = "/host:CPU"
ACCELERATOR_PREFIX = "/device:GPU:"
PROGRAMS_PLANE = "/host:metadata"

StatValue = int | float | str | bytes
Times = NDArray[np.int64]
Indices = NDArray[np.intp]


class Statistics(Protocol):
    """What the events of one line say beside their names and times."""

    def of(self, index: int) -> dict[str, StatValue]:
        """All statistics of one event."""
        ...

    def integers(self, name: str, indices: Indices) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """One statistic of many events: its value, and whether the event has it as an integer.

        The value is 0 where the event does not have it. Unsigned values above 2**63 wrap.
        """
        ...

    def texts(self, name: str, indices: Indices) -> tuple[list[str], Indices]:
        """One statistic of many events: the different texts, and the place of each event's.

        An event that does not have it, or has it as something else, has the empty text.
        """
        ...


@dataclass(frozen=True)
class CompiledWork:
    """What XLA made one instruction of, as operations of the graph: `scope/name:Type`."""

    ends_in: frozenset[str]
    """Those whose results it gives; of what XLA put in between, those beside it."""
    holds: frozenset[str]
    """All that were fused into it, and these."""


class Program(Protocol):
    """What XLA compiled."""

    def work(self, instruction: str) -> CompiledWork | None:
        """What the instruction of that name does; None where that is not known."""
        ...


@dataclass(frozen=True)
class Line:
    """One thread of the host, or one stream of a device; events sorted by start, longest first."""

    id: int
    name: str
    start_ns: Times
    end_ns: Times
    """Never before the event's start."""
    name_ids: NDArray[np.int32]
    """For each event, the place of its name in the plane's `names`."""
    statistics: Statistics = field(repr=False)
    plane: Plane = field(repr=False)
    _found: dict[tuple[str, tuple[int, ...]], NDArray[np.int64]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __len__(self) -> int:
        return len(self.start_ns)

    @cached_property
    def used_names(self) -> dict[int, str]:
        """Every name that occurs on this line, by its place in the plane's `names`."""
        counts = np.bincount(self.name_ids, minlength=1)
        return {key: self.plane.names[key] for key in np.flatnonzero(counts).tolist()}

    @cached_property
    def first_events(self) -> dict[int, int]:
        """The first event of every name that occurs on this line, by the name's place."""
        first = np.full(len(self.plane.names), -1)
        looked_at = min(_FIRST_LOOK, len(self))
        while True:
            # Written from the last event to the first, so that the first one's index stays.
            first[self.name_ids[:looked_at][::-1]] = np.arange(looked_at - 1, -1, -1)
            found = np.flatnonzero(first >= 0)
            if len(found) == len(self.used_names):
                return dict(zip(found.tolist(), first[found].tolist(), strict=True))
            looked_at = min(looked_at * 8, len(self))

    def event_name(self, index: int) -> str:
        return self.plane.names[int(self.name_ids[index])]

    def stats(self, index: int) -> dict[str, StatValue]:
        """The event's statistics; those that all events of its name share where it has none."""
        return self.statistics.of(index)

    def stat(self, index: int, name: str) -> StatValue | None:
        """One statistic of the event."""
        return self.statistics.of(index).get(name)

    def integers(self, name: str, indices: Indices) -> NDArray[np.int64]:
        """One statistic of many events; 0 where an event does not have it."""
        return self.statistics.integers(name, indices)[0]

    def integers_of(
        self, stat: str, name_ids: tuple[int, ...]
    ) -> tuple[Indices, NDArray[np.int64]]:
        """Indices of all events with these names, and one statistic of each, read once."""
        key = stat, name_ids
        indices = np.flatnonzero(self.named(name_ids))
        if key not in self._found:
            self._found[key] = self.integers(stat, indices)
        return indices, self._found[key]

    def named(self, keep: Iterable[int]) -> NDArray[np.bool_]:
        """Which events have one of these names, given by their places."""
        wanted = np.zeros(len(self.plane.names), np.bool_)
        wanted[list(keep)] = True
        chosen: NDArray[np.bool_] = wanted[self.name_ids]
        return chosen


@dataclass(frozen=True)
class Plane:
    """The host, or one device."""

    name: str
    names: list[str] = field(repr=False)
    """The names of its events; two of them may be the same."""
    stats: dict[str, StatValue] = field(default_factory=dict, repr=False)
    """What the profile says of the device: vendor, name, compute capability."""
    lines: list[Line] = field(default_factory=list, repr=False)
    programs: Mapping[int, Program] = field(default_factory=dict, repr=False)
    """What XLA compiled, on the plane that tells of that, by the number that events give."""


@dataclass(frozen=True)
class TraceEvents:
    """Everything that one profile recorded."""

    path: Path
    planes: list[Plane]
    warnings: list[str] = field(default_factory=list)
    epoch_ns: int | None = None
    """Time 0 in nanoseconds since 1970 by the host's clock; None where the file does not say."""

    @property
    def host(self) -> Plane | None:
        return next((plane for plane in self.planes if plane.name == HOST_PLANE), None)

    @property
    def host_lines(self) -> list[Line]:
        return [] if self.host is None else self.host.lines

    @property
    def accelerators(self) -> list[Plane]:
        """The device planes on which anything ran; a visible GPU without events is left out."""
        return [
            plane
            for plane in self.planes
            if plane.name.startswith(ACCELERATOR_PREFIX) and any(map(len, plane.lines))
        ]

    @property
    def programs(self) -> dict[int, Program]:
        """What XLA compiled, by the number that events give."""
        return {number: one for plane in self.planes for number, one in plane.programs.items()}

    @property
    def first_ns(self) -> int:
        """The earliest start; 0 where there are no events."""
        return min((int(line.start_ns[0]) for line in self.lines() if len(line)), default=0)

    @property
    def event_count(self) -> int:
        return sum(len(line) for line in self.lines())

    def lines(self) -> Iterator[Line]:
        for plane in self.planes:
            yield from plane.lines
