"""The statistics of a line's events, decoded from the file when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, StatValue
from pipediag.trace.file_bytes import Release
from pipediag.trace.malformed import MalformedError
from pipediag.trace.xplane.event_names import EventNames, IntegerColumn, wrapped
from pipediag.trace.xplane.messages import parsed, text
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
