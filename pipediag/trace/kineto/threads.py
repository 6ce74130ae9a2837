"""The events of one stream or one thread, gathered one by one and then made columns."""

from __future__ import annotations

from array import array

import numpy as np

from pipediag.trace.events import Line, Plane
from pipediag.trace.kineto.arguments import ArgumentStatistics
from pipediag.trace.kineto.form import Arguments
from pipediag.trace.kineto.times import LARGEST_NS

_ABSENT = -(1 << 63)
"""Stands for an argument that an event does not have."""

_NO_ARGUMENTS = Arguments()


class Thread:
    """A column each for times, names, categories and those arguments that are integers."""

    def __init__(self) -> None:
        self.name = ""
        self._start_ns = array("q")
        self._end_ns = array("q")
        self._names = array("i")
        self._categories = array("i")
        self._correlations = array("q")
        self._sizes = array("q")
        self._external_ids = array("q")

    def __len__(self) -> int:
        return len(self._start_ns)

    @property
    def first_ns(self) -> int:
        """The earliest start."""
        return min(self._start_ns)

    def add(
        self, times: tuple[int, int], name: int, category: int, arguments: Arguments | None
    ) -> None:
        """Takes an event: nanoseconds, and the places of its name and its category."""
        said = arguments or _NO_ARGUMENTS
        self._start_ns.append(times[0])
        self._end_ns.append(times[1])
        self._names.append(name)
        self._categories.append(category)
        self._correlations.append(_integer(said.correlation))
        self._sizes.append(_integer(said.bytes))
        external_id = said.external_id
        self._external_ids.append(
            _integer(said.old_external_id if external_id is None else external_id)
        )

    def line(self, plane: Plane, number: int, name: str, first_ns: int, kinds: list[str]) -> Line:
        """The thread as a line of the plane, times from `first_ns` on."""
        start_ns = np.array(self._start_ns, np.int64) - first_ns
        end_ns = np.array(self._end_ns, np.int64) - first_ns
        order = np.lexsort((-end_ns, start_ns))
        columns = {}
        for stat, column in (
            ("correlation_id", self._correlations),
            ("bytes", self._sizes),
            ("external_id", self._external_ids),
        ):
            values = np.array(column, np.int64)[order]
            present = values != _ABSENT
            if present.any():
                columns[stat] = np.where(present, values, 0), present
        category_ids = np.array(self._categories, np.int32)[order]
        return Line(
            id=number,
            name=name,
            start_ns=start_ns[order],
            end_ns=end_ns[order],
            name_ids=np.array(self._names, np.int32)[order],
            statistics=ArgumentStatistics(category_ids, kinds, columns),
            plane=plane,
        )


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_NS:
        return value
    return _ABSENT
