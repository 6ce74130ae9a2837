"""The names of a plane's events, and the statistics that all events of a name have in common."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, StatValue
from pipediag.trace.xplane.fields import Field, Span
from pipediag.trace.xplane.messages import parsed, text
from pipediag.trace.xplane.stat_names import StatNames

IntegerColumn = tuple[NDArray[np.int64], NDArray[np.bool_]]


class EventNames:
    """Names by places from 0 on; events give keys.

    Shared statistics stay in the file until they are asked for: a compiled program is one of them.
    """

    def __init__(self, data: memoryview, entries: list[Field], stat_names: StatNames) -> None:
        self.names: list[str] = []
        self._data = data
        self._stat_names = stat_names
        self._places: dict[int, int] = {}
        self._adding = threading.Lock()
        """Lines are read at the same time; any of them may hold a key without metadata."""
        self._described: dict[int, Span] = {}
        """Where the names' metadata lies that has statistics."""
        self._decoded: dict[int, dict[str, StatValue]] = {}
        for entry in entries:
            self._add(entry.payload, entry.end)

    def places(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """The place of each key's name; a key without metadata gets the empty name."""
        different, inverse = _distinct(keys)
        with self._adding:
            places = [self._place(key) for key in different.tolist()]
        found: NDArray[np.int32] = np.array(places, np.int32)[inverse]
        return found

    def shared(self, place: int) -> dict[str, StatValue]:
        """What all events of that name have in common. Raises MalformedError."""
        if place not in self._decoded:
            if place not in self._described:
                return {}
            self._decoded[place] = self.described(place)
        return self._decoded[place]

    def described(self, place: int) -> dict[str, StatValue]:
        """The same where it is large and asked for once: it is not kept."""
        if place not in self._described:
            return {}
        entry = parsed("EventMetadataEntry", self._data, [self._described[place]])
        return self._stat_names.decode(entry.value.stats)

    def shared_integers(self, stat: str, places: NDArray[np.int32]) -> IntegerColumn:
        """A shared statistic of many events, given the places of their names."""
        values = np.zeros(len(self.names), np.int64)
        present = np.zeros(len(self.names), np.bool_)
        for place, value in self._shared_by_all(stat):
            if isinstance(value, int):
                values[place], present[place] = wrapped(value), True
        return values[places], present[places]

    def shared_texts(
        self, stat: str, places: NDArray[np.int32], numbers: dict[str, int]
    ) -> Indices:
        """The same for texts, by numbers: new ones are added, and 0 is the lack of a text."""
        found = np.zeros(len(self.names), np.intp)
        for place, value in self._shared_by_all(stat):
            if isinstance(value, str):
                found[place] = numbers.setdefault(value, len(numbers))
        return found[places]

    def _shared_by_all(self, stat: str) -> Iterator[tuple[int, StatValue]]:
        for place in self._described:
            value = self.shared(place).get(stat)
            if value is not None:
                yield place, value

    def _add(self, start: int, end: int) -> None:
        entry = parsed("EventMetadataEntry", self._data, [(start, end)])
        place = self._place(entry.key)
        self.names[place] = text(entry.value.name)
        self._described.pop(place, None)
        if entry.value.stats:
            self._described[place] = start, end

    def _place(self, key: int) -> int:
        place = self._places.setdefault(key, len(self.names))
        if place == len(self.names):
            self.names.append("")
        return place


def wrapped(value: int) -> int:
    """An unsigned value above 2**63 as the signed one that has the same bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _distinct(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], Indices]:
    """The different keys, sorted, and for each key its place among them."""
    largest = int(keys.max(initial=0))
    if largest > 4 * len(keys) + 1024 or int(keys.min(initial=0)) < 0:
        return np.unique(keys, return_inverse=True)
    # Keys are small numbers in every profile of today: a table is faster than sorting.
    used = np.zeros(largest + 1, np.bool_)
    used[keys] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[keys]
