"""Columns of a profile's events, for every format.

Times are nanoseconds (int64) on one clock for the whole profile.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.intervals import Intervals, normalise, rows
from pipediag.vocabulary import TraceFormat

HOST_PLANE = "/host:CPU"
ACCELERATOR_PREFIX = "/device:GPU:"
_TPU_PREFIX = "/device:TPU:"
PROGRAMS_PLANE = "/host:metadata"
LARGEST_NS = 1 << 62
"""1970 to 2116; a later time is damage, and adding an event's offset to it would overflow."""

StatValue = int | float | str | bytes
Times = NDArray[np.int64]
Indices = NDArray[np.intp]


class Statistics(ABC):
    @abstractmethod
    def of(self, index: int) -> dict[str, StatValue]:
        """Return all statistics of one event."""

    def integers(self, name: str, indices: Indices) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return one statistic of many events, and which events have it as an integer.

        The value is 0 where the event does not have it. Unsigned values above 2**63 wrap.
        """
        found = [self.of(index).get(name) for index in indices.tolist()]
        present = np.array([isinstance(value, int) for value in found], np.bool_)
        whole = [value % (1 << 64) if isinstance(value, int) else 0 for value in found]
        return np.array(whole, np.uint64).view(np.int64), present

    def texts(self, name: str, indices: Indices) -> tuple[list[str], Indices]:
        """Return the different texts of one statistic, the empty one first, and each event's place.

        An event that does not have it, or has it as something else, has the empty text.
        """
        numbers = {"": 0}
        text_of = [
            numbers.setdefault(value, len(numbers)) if isinstance(value, str) else 0
            for value in (self.of(index).get(name) for index in indices.tolist())
        ]
        return list(numbers), np.array(text_of, np.intp)


@dataclass(frozen=True)
class CompiledWork:
    """Operations of the graph, as `scope/name:Type`, of which XLA made one instruction."""

    ends_in: frozenset[str]
    """Operations whose results it gives; for what XLA put in between, its neighbours."""
    holds: frozenset[str]
    """All operations that were fused into it, and these."""


Program = Callable[[str], CompiledWork | None]
"""Work of an instruction, given by its name, in a program that XLA compiled; None where not
known."""


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

    def __len__(self) -> int:
        return len(self.start_ns)

    @cached_property
    def first_events(self) -> dict[int, int]:
        """The first event of every name that occurs on this line, by the name's place."""
        first = np.full(len(self.plane.names), -1)
        # Written from the last event to the first, so that the first one's index stays.
        first[self.name_ids[::-1]] = np.arange(len(self) - 1, -1, -1)
        found = np.flatnonzero(first >= 0)
        return dict(zip(found.tolist(), first[found].tolist(), strict=True))

    @cached_property
    def used_names(self) -> dict[int, str]:
        """Every name that occurs on this line, by its place in the plane's `names`."""
        return {key: self.plane.names[key] for key in self.first_events}

    @cached_property
    def executor_work(self) -> tuple[Indices, NDArray[np.int64]]:
        """Events in which the thread executed graph functions, and the run of each, by step id."""
        indices = self.starting("ExecutorState::Process", "ExecutorDoneCallback")
        return indices, self.integers("id", indices)

    def event_name(self, index: int) -> str:
        return self.plane.names[int(self.name_ids[index])]

    def stats(self, index: int) -> dict[str, StatValue]:
        """Return the event's statistics; its own come before those of its name."""
        return self.statistics.of(index)

    def integers(self, name: str, indices: Indices) -> NDArray[np.int64]:
        """Return one statistic of many events; 0 where an event does not have it."""
        return self.statistics.integers(name, indices)[0]

    def step_ids(self, indices: Indices) -> NDArray[np.int64]:
        """Return the runs of graph functions to which these events belong; 0 for none."""
        return self.integers("id", indices)

    def named(self, keep: Iterable[int]) -> NDArray[np.bool_]:
        """Return which events have one of these names, given by their places."""
        wanted = np.zeros(len(self.plane.names), np.bool_)
        wanted[list(keep)] = True
        chosen: NDArray[np.bool_] = wanted[self.name_ids]
        return chosen

    def names_like(self, pattern: re.Pattern[str]) -> list[int]:
        """Return places of the names that the pattern matches from their start."""
        return [key for key, name in self.used_names.items() if pattern.match(name)]

    def names_with(self, stat: str) -> list[int]:
        """Return places of the names whose first event has the statistic, as then all do."""
        return [key for key, first in self.first_events.items() if stat in self.stats(first)]

    def having(self, keep: Collection[int]) -> Indices:
        """Return the events that have one of these names, given by their places."""
        return np.flatnonzero(self.named(keep)) if keep else np.empty(0, np.intp)

    def starting(self, *prefixes: str) -> Indices:
        names = self.used_names.items()
        return self.having([key for key, name in names if name.startswith(prefixes)])

    def matching(self, pattern: re.Pattern[str]) -> Indices:
        return self.having(self.names_like(pattern))

    def spans(self, indices: Indices) -> NDArray[np.int64]:
        """Return starts and ends of these events, shape (events, 2)."""
        return rows(self.start_ns[indices], self.end_ns[indices])

    def during(self, indices: Indices) -> Intervals:
        """Return when the line was in one of these events."""
        return normalise(self.start_ns[indices], self.end_ns[indices])

    def during_like(self, pattern: re.Pattern[str]) -> Intervals:
        return self.during(self.matching(pattern))


@dataclass(frozen=True)
class Plane:
    """The host, or one device."""

    name: str
    names: list[str] = field(repr=False)
    """The names of its events; two of them may be the same."""
    stats: dict[str, StatValue] = field(default_factory=dict, repr=False)
    """Details of the device: vendor, name, compute capability."""
    lines: list[Line] = field(default_factory=list, repr=False)
    programs: dict[int, Program] = field(default_factory=dict, repr=False)
    """Programs that XLA compiled, on the plane that has them, by the number that events give."""


@dataclass(frozen=True)
class TraceEvents:
    path: Path
    format: TraceFormat
    planes: list[Plane]
    warnings: list[str] = field(default_factory=list)

    @property
    def host_lines(self) -> list[Line]:
        host = next((plane for plane in self.planes if plane.name == HOST_PLANE), None)
        return [] if host is None else host.lines

    @property
    def accelerators(self) -> list[Plane]:
        """The device planes on which anything ran; a visible GPU without events is left out."""
        return [
            plane
            for plane in self.planes
            if plane.name.startswith(ACCELERATOR_PREFIX) and any(map(len, plane.lines))
        ]

    @property
    def on_tpu(self) -> bool:
        """True if anything ran on a TPU, whose planes are not read."""
        named = (plane for plane in self.planes if plane.name.startswith(_TPU_PREFIX))
        return any(len(line) for plane in named for line in plane.lines)

    @property
    def programs(self) -> dict[int, Program]:
        """Programs that XLA compiled, by the number that events give."""
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
