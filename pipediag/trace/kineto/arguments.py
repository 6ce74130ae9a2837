"""What Kineto says of an event beside its name and times."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, StatValue


@dataclass(frozen=True)
class ArgumentStatistics:
    """Each event's category, and those of its arguments that are integers, as columns."""

    category_ids: NDArray[np.int32] = field(repr=False)
    categories: list[str] = field(repr=False)
    columns: dict[str, tuple[NDArray[np.int64], NDArray[np.bool_]]] = field(repr=False)
    """Values, and which events have one."""

    def of(self, index: int) -> dict[str, StatValue]:
        """All statistics of one event."""
        found: dict[str, StatValue] = {"category": self.categories[self.category_ids[index]]}
        for name, (values, present) in self.columns.items():
            if present[index]:
                found[name] = int(values[index])
        return found

    def integers(self, name: str, indices: Indices) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """One statistic of many events."""
        if name not in self.columns:
            return np.zeros(len(indices), np.int64), np.zeros(len(indices), np.bool_)
        values, present = self.columns[name]
        return values[indices], present[indices]

    def texts(self, name: str, indices: Indices) -> tuple[list[str], Indices]:
        """The category of many events; arguments that are texts are not kept."""
        if name != "category":
            return [""], np.zeros(len(indices), np.intp)
        return self.categories, self.category_ids[indices].astype(np.intp)
