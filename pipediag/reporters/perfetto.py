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
from itertools import count, repeat
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from pipediag import __version__
from pipediag.encoding import harmless_json
from pipediag.measures.profile import all_gaps
from pipediag.reporters.words import labels
from pipediag.session.devices import DeviceGap
from pipediag.session.files import replacing
from pipediag.trace.classes import STEP_CLASSES
from pipediag.trace.device_events import CORRELATION, NOT_FOUND, stream_lines
from pipediag.trace.events import HOST_PLANE, Indices, Line, Times, TraceEvents
from pipediag.trace.files import read_profile
from pipediag.trace.steps import StepSplit
from pipediag.trace.summary import TraceSummary


class Track(NamedTuple):
    """One thread of the trace."""

    pid: int
    tid: int


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
        """Add a process.

        ui.perfetto.dev shows those with the most events first, whatever sort index they have.
        """
        pid = next(self._ids)
        self._event(ph="M", pid=pid, tid=0, name="process_name", args={"name": name})
        return pid

    def track(self, pid: int, name: str) -> Track:
        """Add a thread to a process, below those that it has.

        ui.perfetto.dev shows the threads of a process in the order of their ids, and Chrome's own
        viewer in that of their sort indexes.
        """
        track = Track(pid, next(self._ids))
        place = {"ph": "M", "pid": pid, "tid": track.tid}
        self._event(**place, name="thread_name", args={"name": name})
        self._event(**place, name="thread_sort_index", args={"sort_index": track.tid})
        return track

    def slices(
        self,
        track: Track,
        start_ns: Times,
        end_ns: Times,
        names: Iterable[str],
        arguments: Iterable[str] | None = None,
    ) -> None:
        """Write events with a duration, in order of their start.

        `names` and `arguments` are JSON already, one for each event: those of a profile come again
        and again, and are encoded once.
        """
        head = f'{{"ph":"X","pid":{track.pid},"tid":{track.tid},"ts":'
        self._write(
            f'{head}{start // 1000}.{start % 1000:03d},"dur":{length // 1000}.{length % 1000:03d},'
            f'"name":{name}{"," if argument else ""}{argument}}}'
            for start, length, name, argument in zip(
                (start_ns - self.origin_ns).tolist(),
                (end_ns - start_ns).tolist(),
                names,
                arguments or repeat(""),
                strict=False,
            )
        )

    def finish(self, other_data: Mapping[str, Any]) -> None:
        """Close the trace; `other_data` is shown under "Info and stats"."""
        self._stream.write(f'\n],"otherData":{_encoded(other_data)}}}\n')

    def _event(self, **fields: Any) -> None:
        self._write([_encoded(fields)])

    def _write(self, events: Iterable[str]) -> None:
        write = self._stream.write
        for event in events:
            write(event if self._first else ",\n" + event)
            self._first = False


def _encoded(value: Any) -> str:
    """Return a value as JSON without blanks; what is no UTF-8 in a profile becomes escapes."""
    return harmless_json(json.dumps(value, separators=(",", ":"), default=str))


def _arguments(values: Mapping[str, Any]) -> str:
    """Return the `args` of an event, without what is None."""
    known = {key: value for key, value in values.items() if value is not None}
    return f'"args":{_encoded(known)}'


SHORTEST_HOST_NS = 1_000
"""Shorter events of the host's threads are left out: they are most of all events, and cannot be
seen beside a step. A browser's tab holds about a million."""
MOST_LANES = 8
"""Events that fit on none of them are put on the last one all the same."""
_ALONE = "pipediag"
"""Name of the process of a single host, which holds pipediag's tracks and the original ones."""
_LARGEST_EXACT_NS = 1 << 53
"""Larger times are rounded where the format's numbers are read as 64-bit floats."""
_LEVEL = 3
"""A trace shrinks to a tenth at any level, and level 9 takes ten times as long."""
_BUFFER_BYTES = 1 << 20


def write_perfetto(path: Path, summaries: Sequence[tuple[str, TraceSummary]]) -> None:
    """Write a trace of all hosts, packed by gzip; each profile is read once more.

    Times are the profile's own. Where it counts from 1970, or has times before 0, they count from
    its first event. A host is shown where there are several.

    Raises:
        PipediagError: a profile can no longer be read, or the file cannot be written; it is
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
        for host, summary in summaries:
            events = read_profile(summary.path)
            writer.origin_ns = origins[host] = _origin(events)
            pid = writer.process(host if len(summaries) > 1 else _ALONE)
            _write_own_tracks(writer, pid, summary)
            _write_originals(writer, pid, events)
        notes = {f"origin_ns {host}": origin for host, origin in origins.items() if origin}
        writer.finish({"pipediag_version": __version__, **notes})


def _origin(events: TraceEvents) -> int:
    filled = [line for line in events.lines() if len(line)]
    first = min((int(line.start_ns[0]) for line in filled), default=0)
    last = max((int(line.end_ns.max()) for line in filled), default=0)
    return first if first < 0 or last > _LARGEST_EXACT_NS else 0


def _write_own_tracks(writer: TraceWriter, pid: int, summary: TraceSummary) -> None:
    if summary.steps is not None:
        _write_steps(writer, pid, summary.steps)
    for device in summary.devices:
        track = writer.track(pid, f"{device.name} idle")
        for places, gaps in all_gaps(device, summary):
            writer.slices(
                track,
                device.gaps.spans[places, 0],
                device.gaps.spans[places, 1],
                [_encoded(labels.name_of(labels.GAP_CAUSE, gap.cause)) for gap in gaps],
                map(_gap_arguments, gaps, device.gaps.launch_ids[places].tolist()),
            )


def _write_steps(writer: TraceWriter, pid: int, split: StepSplit) -> None:
    windows = split.steps.windows
    writer.slices(
        writer.track(pid, "Steps"),
        windows[:, 0],
        windows[:, 1],
        [_encoded(f"step {number}") for number in split.steps.numbers],
        [
            _arguments(
                {f"{name}_us": ns / 1e3 for name, ns in zip(STEP_CLASSES, row, strict=True) if ns}
            )
            for row in split.ns.tolist()
        ],
    )


def _gap_arguments(gap: DeviceGap, launch: int) -> str:
    return _arguments(
        {
            "cause": gap.cause,
            "duration_us": round(gap.duration_ms * 1e3, 3),
            **gap.model_dump(include={"start_ms", "step", "doing"}),
            CORRELATION: launch if launch != NOT_FOUND else None,
            "operation": gap.iterator,
            **{f"{name}_us": round(ms * 1e3, 3) for name, ms in gap.causes_ms.items()},
        }
    )


def _write_originals(writer: TraceWriter, pid: int, events: TraceEvents) -> None:
    """Write the profile's own events: each device's streams, then the threads of the host."""
    for plane in events.planes:
        if plane.name != HOST_PLANE:
            title = plane.name.removeprefix("/device:") + " / "
            names = [_encoded(name) for name in plane.names]
            for line in stream_lines(plane):
                _write_line(writer, pid, title, line, np.arange(len(line)), names)
    lines = [line for line in events.host_lines if len(line)]
    names = [_encoded(name) for name in lines[0].plane.names] if lines else []
    for line in lines:
        kept = np.flatnonzero(line.end_ns - line.start_ns >= SHORTEST_HOST_NS)
        _write_line(writer, pid, "", line, kept, names)


def _write_line(
    writer: TraceWriter, pid: int, title: str, line: Line, chosen: Indices, names: Sequence[str]
) -> None:
    """Write the chosen events of a line as tracks; `title` stands before their names."""
    if not len(chosen):
        return
    lanes = nesting_lanes(line.start_ns[chosen], line.end_ns[chosen])
    for lane in range(int(lanes.max()) + 1):
        events = chosen[lanes == lane]
        name = title + (line.name or f"thread {line.id}")
        writer.slices(
            writer.track(pid, f"{name} ({lane + 1})" if lane else name),
            line.start_ns[events],
            line.end_ns[events],
            map(names.__getitem__, line.name_ids[events].tolist()),
            _correlations(line, events),
        )


def _correlations(line: Line, events: NDArray[np.intp]) -> list[str] | None:
    """Return what ties a launch to what it launched, so that a search finds both."""
    ids, present = line.statistics.integers(CORRELATION, events)
    if not present.any():
        return None
    return [
        f'"args":{{"correlation_id":{number}}}' if known else ""
        for number, known in zip(ids.tolist(), present.tolist(), strict=True)
    ]


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
