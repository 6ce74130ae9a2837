"""Traces for ui.perfetto.dev: a profile below pipediag's steps and gaps.

The format is Chrome's trace event format. Times are microseconds with three decimals, so that no
nanosecond is lost. Process and thread ids are counted here: those of a profile may clash between
hosts, or be too large.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from pipediag import __version__
from pipediag.encoding import harmless_json
from pipediag.measures.profile import all_gaps
from pipediag.reporters.words import labels
from pipediag.session.devices import DeviceGap
from pipediag.session.files import replacing
from pipediag.trace.classes import STEP_CLASSES
from pipediag.trace.device_events import stream_lines
from pipediag.trace.events import HOST_PLANE, Times, TraceEvents
from pipediag.trace.files import read_profile
from pipediag.trace.summary import TraceSummary


class TraceWriter:
    """Writer of the one JSON object that a trace is; `finish` closes it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # No thread has the id of a process: it would be taken for its main thread.
        self._ids = count(1)
        self._first = True
        self.origin_ns = 0
        """Subtracted from every time that is written."""
        stream.write('{"displayTimeUnit":"ns","traceEvents":[\n')

    def process(self, name: str) -> int:
        """Add a process; return its id.

        ui.perfetto.dev shows those with the most events first, whatever sort index they have.
        """
        pid = next(self._ids)
        self._write([_metadata("process_name", pid, 0, name=name)])
        return pid

    def track(self, pid: int, name: str, spans: NDArray[np.int64], details: Iterable[str]) -> None:
        """Add a thread to a process, below those that it has, with events in order of their start.

        `details` are the other fields of each event, from `_details`: those of a profile come again
        and again, and are encoded once.
        """
        tid = next(self._ids)
        # ui.perfetto.dev shows threads in the order of their ids, Chrome's viewer by their index.
        self._write([_metadata("thread_name", pid, tid, name=name)])
        self._write([_metadata("thread_sort_index", pid, tid, sort_index=tid)])
        head = f'{{"ph":"X","pid":{pid},"tid":{tid},"ts":'
        self._write(
            f'{head}{start // 1000}.{start % 1000:03d},"dur":{length // 1000}.{length % 1000:03d},'
            f"{one}}}"
            for start, length, one in zip(
                (spans[:, 0] - self.origin_ns).tolist(),
                (spans[:, 1] - spans[:, 0]).tolist(),
                details,
                strict=True,
            )
        )

    def finish(self, other_data: Mapping[str, Any]) -> None:
        """Close the trace; `other_data` is shown under "Info and stats"."""
        self._stream.write(f'\n],"otherData":{_encoded(other_data)}}}\n')

    def _write(self, events: Iterable[str]) -> None:
        for event in events:
            self._stream.write(event if self._first else ",\n" + event)
            self._first = False


def _metadata(kind: str, pid: int, tid: int, **values: Any) -> str:
    return _encoded({"ph": "M", "pid": pid, "tid": tid, "name": kind, "args": values})


def _encoded(value: Any) -> str:
    """Return a value as JSON without blanks; what is no UTF-8 in a profile becomes escapes."""
    return harmless_json(json.dumps(value, separators=(",", ":"), default=str))


def _details(name: str, arguments: Mapping[str, Any] | None = None) -> str:
    """Return the name of an event and its `args`, without what is None."""
    known = {key: value for key, value in (arguments or {}).items() if value is not None}
    return f'"name":{_encoded(name)}' + (f',"args":{_encoded(known)}' if known else "")


SHORTEST_HOST_NS = 1_000
"""Shorter events of the host's threads are left out: they are most of all events, and cannot be
seen beside a step. A browser's tab holds about a million."""
MOST_LANES = 8
"""Events that fit on none of them are put on the last one all the same."""
_ALONE = "pipediag"
"""Name of the process of a single host, which holds pipediag's tracks and the original ones."""
_LEVEL = 3
"""A trace shrinks to a tenth at any level, and level 9 takes ten times as long."""
_BUFFER_BYTES = 1 << 20


def write_perfetto(path: Path, hosts: Sequence[TraceSummary]) -> None:
    """Write a trace of all hosts, packed by gzip; each profile is read once more.

    Times count from the profile's first event. A host is shown where there are several.

    Raises PipediagError: a profile can no longer be read, or the file cannot be written; it is
    replaced whole or not at all.
    """
    origins: dict[str, int] = {}
    with (
        replacing(path) as file,
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
        io.BufferedWriter(packed, _BUFFER_BYTES) as buffered,
        io.TextIOWrapper(buffered, encoding="utf-8", newline="") as stream,
    ):
        writer = TraceWriter(stream)
        for host in hosts:
            events = read_profile(host.path)
            writer.origin_ns = origins[host.host] = events.first_ns
            pid = writer.process(host.host if len(hosts) > 1 else _ALONE)
            _write_own_tracks(writer, pid, host)
            _write_originals(writer, pid, events)
        notes = {f"origin_ns {host}": origin for host, origin in origins.items()}
        writer.finish({"pipediag_version": __version__, **notes})


def _write_own_tracks(writer: TraceWriter, pid: int, summary: TraceSummary) -> None:
    split = summary.steps
    if split is not None:
        steps = zip(split.numbers, split.ns.tolist(), strict=True)
        described = (_step(number, row) for number, row in steps)
        writer.track(pid, "Steps", split.windows, described)
    for device in summary.devices:
        described = (_gap(gap) for gap in all_gaps(device, summary))
        writer.track(pid, f"{device.name} idle", device.gaps.spans, described)


def _step(number: int, row: list[int]) -> str:
    times = {f"{name}_us": ns / 1e3 for name, ns in zip(STEP_CLASSES, row, strict=True) if ns}
    return _details(f"step {number}", times)


def _gap(gap: DeviceGap) -> str:
    arguments = {
        "cause": gap.cause,
        "duration_us": round(gap.duration_ms * 1e3, 3),
        **gap.model_dump(include={"start_ms", "step", "doing"}),
        "operation": gap.iterator,
        **{f"{name}_us": round(ms * 1e3, 3) for name, ms in gap.causes_ms.items()},
    }
    return _details(labels.GAP_CAUSE[gap.cause], arguments)


def _write_originals(writer: TraceWriter, pid: int, events: TraceEvents) -> None:
    """Write the profile's own events: each device's streams, then the threads of the host."""
    for plane in sorted(events.planes, key=lambda plane: plane.name == HOST_PLANE):
        of_host = plane.name == HOST_PLANE
        title = "" if of_host else plane.name.removeprefix("/device:") + " / "
        names = [_details(name) for name in plane.names]
        for line in plane.lines if of_host else stream_lines(plane):
            shortest = SHORTEST_HOST_NS if of_host else 0
            chosen = np.flatnonzero(line.end_ns - line.start_ns >= shortest)
            name = title + (line.name or f"thread {line.id}")
            lanes = nesting_lanes(line.start_ns[chosen], line.end_ns[chosen])
            for lane in np.unique(lanes).tolist():
                here = chosen[lanes == lane]
                track = f"{name} ({lane + 1})" if lane else name
                details = [names[place] for place in line.name_ids[here].tolist()]
                writer.track(pid, track, line.spans(here), details)


def nesting_lanes(start_ns: Times, end_ns: Times) -> NDArray[np.int8]:
    """Return the lane of each event, so that those of one lane nest or are disjoint.

    Perfetto draws no two slices of a track across each other and drops the later one. A thread's
    events nest; those of a stream and of asynchronous work need not. Events come sorted by start,
    the longest first.
    """
    lanes = np.zeros(len(start_ns), np.int8)
    if (start_ns[1:] >= end_ns[:-1]).all():
        return lanes
    open_ends: list[list[int]] = [[] for _ in range(MOST_LANES)]
    for index, (start, end) in enumerate(zip(start_ns.tolist(), end_ns.tolist(), strict=True)):
        for around in open_ends:
            while around and around[-1] <= start:
                around.pop()
        free = (n for n, around in enumerate(open_ends) if not around or end <= around[-1])
        lanes[index] = lane = next(free, MOST_LANES - 1)
        open_ends[lane].append(end)
    return lanes
