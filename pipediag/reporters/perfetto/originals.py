"""The profile's own events as tracks: each device's streams, then the threads of the host.

A device's events are all written. Of the host's, the shortest are left out beyond a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.reporters.perfetto.writer import TraceWriter, encoded
from pipediag.trace.device.launches import CORRELATION
from pipediag.trace.device.streams import stream_lines
from pipediag.trace.events import HOST_PLANE, Indices, Line, Plane, Times, TraceEvents

# Puts the events of one thread on lanes on which they nest or are disjoint.
#
# Perfetto draws no two slices of a track across each other and drops the later one. A thread's
# events nest; those of a stream and of asynchronous work need not.

MOST_LANES = 8
"""What fits on none of them is put on the last one all the same."""


def nesting_lanes(start_ns: Times, end_ns: Times) -> NDArray[np.int8]:
    """The lane of each event, counted from 0; events sorted by start, the longest first."""
    lanes = np.zeros(len(start_ns), np.int8)
    if (start_ns[1:] >= end_ns[:-1]).all():
        return lanes
    open_ends: list[list[int]] = [[] for _ in range(MOST_LANES)]
    for index, (start, end) in enumerate(zip(start_ns.tolist(), end_ns.tolist(), strict=True)):
        lanes[index] = lane = _first_free(open_ends, start, end)
        open_ends[lane].append(end)
    return lanes


def _first_free(open_ends: list[list[int]], start: int, end: int) -> int:
    """Events that have ended by `start` are taken from their lanes on the way."""
    for lane, around in enumerate(open_ends):
        while around and around[-1] <= start:
            around.pop()
        if not around or end <= around[-1]:
            return lane
    return MOST_LANES - 1


@dataclass(frozen=True)
class LeftOut:
    """The host's events that were not written."""

    count: int
    longest_ns: int
    """No event longer than that was left out."""


def write_originals(
    writer: TraceWriter, pid: int, events: TraceEvents, most_host_events: int
) -> LeftOut:
    """Writes the profile's events into a process; of the host's threads at most so many."""
    for plane in events.planes:
        if plane.name != HOST_PLANE:
            lines = [line for line in stream_lines(plane) if len(line)]
            title = plane.name.removeprefix("/device:") + " / "
            _write_lines(writer, pid, title, lines, [np.arange(len(line)) for line in lines])
    lines = [line for line in events.host_lines if len(line)]
    kept, left_out = _longest(lines, most_host_events)
    _write_lines(writer, pid, "", lines, kept)
    return left_out


def _longest(lines: list[Line], most: int) -> tuple[list[Indices], LeftOut]:
    """Which events of each line are written, and what is left out."""
    lengths = [line.end_ns - line.start_ns for line in lines]
    excess = sum(map(len, lengths)) - most
    if excess <= 0:
        return [np.arange(len(line)) for line in lines], LeftOut(0, 0)
    # Among those as long as the limit there is no choice that would mean anything.
    limit = int(np.partition(np.concatenate(lengths), excess - 1)[excess - 1])
    kept = [np.flatnonzero(of_line > limit) for of_line in lengths]
    return kept, LeftOut(sum(map(len, lengths)) - sum(map(len, kept)), limit)


def _write_lines(
    writer: TraceWriter, pid: int, title: str, lines: Sequence[Line], chosen: Sequence[Indices]
) -> None:
    """Writes the chosen events of each line of a plane; `title` stands before the lines' names."""
    if not any(map(len, chosen)):
        return
    names = _encoded_names(lines[0].plane)
    for line, indices in zip(lines, chosen, strict=True):
        for lane, events in _by_lane(line, indices):
            name = title + (line.name or f"thread {line.id}")
            track = writer.track(pid, f"{name} ({lane + 1})" if lane else name)
            writer.slices(
                track,
                line.start_ns[events],
                line.end_ns[events],
                map(names.__getitem__, line.name_ids[events].tolist()),
                _correlations(line, events),
            )


def _encoded_names(plane: Plane) -> list[str]:
    return [encoded(name) for name in plane.names]


def _by_lane(line: Line, indices: Indices) -> Iterator[tuple[int, NDArray[np.intp]]]:
    if not len(indices):
        return
    lanes = nesting_lanes(line.start_ns[indices], line.end_ns[indices])
    for lane in range(int(lanes.max()) + 1):
        yield lane, indices[lanes == lane]


def _correlations(line: Line, events: NDArray[np.intp]) -> list[str] | None:
    """What ties a launch to what it launched, so that a search finds both."""
    ids, present = line.statistics.integers(CORRELATION, events)
    if not present.any():
        return None
    return [
        f'"args":{{"correlation_id":{number}}}' if known else ""
        for number, known in zip(ids.tolist(), present.tolist(), strict=True)
    ]
