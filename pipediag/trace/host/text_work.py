"""What of the steps' graph works on text: splits, hashes and looks up strings, decodes bytes.

Such operations run on the host and wait for no device, so that the same could be done in the input
pipeline, beside the step before. A type of operation tells: their names are the script's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.tensorflow_names import TEXT_WORK
from pipediag.trace.events import Line
from pipediag.trace.host.classes import Activity
from pipediag.trace.intervals import EMPTY, Intervals, intersect, normalise, total, union


@dataclass(frozen=True)
class TextTimes:
    """Within the steps of a profile together, in nanoseconds."""

    total_ns: int
    """In which any such operation ran."""
    by_type: dict[str, int]
    """The same for each type alone: what runs at once counts for each."""


def text_times(activity: Activity, windows: NDArray[np.int64]) -> TextTimes:
    """Looks for them by type in the graph of the steps, whose windows are given."""
    lines = activity.graph.lines
    if not any(map(_types, lines)):
        return TextTimes(0, {})
    ran: dict[str, Intervals] = {}
    for line, indices, spans in activity.graph.operation_pieces():
        keys = line.name_ids[indices]
        for key, kind in _types(line).items():
            found = spans[keys == key]
            ran[kind] = union(ran.get(kind, EMPTY), normalise(found[:, 0], found[:, 1]))
    steps = normalise(windows[:, 0], windows[:, 1])
    by_type = {kind: total(intersect(spans, steps)) for kind, spans in ran.items()}
    return TextTimes(
        total_ns=total(intersect(union(*ran.values()), steps)),
        by_type={kind: ns for kind, ns in by_type.items() if ns},
    )


def _types(line: Line) -> dict[int, str]:
    """Names of the line, by their places, that are such operations, and their types."""
    return {
        key: kind
        for key, name in line.used_names.items()
        if (kind := name.rpartition(":")[2]) in TEXT_WORK
    }
