"""Traces for ui.perfetto.dev: the writer of the format, and what of a session is written.

The format is Chrome's trace event format. Times are microseconds with three decimals, so that no
nanosecond is lost. Process and thread ids are counted here: those of a profile may clash between
hosts, or be too large.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, repeat
from typing import Any, NamedTuple, TextIO

import numpy as np

from pipediag import __version__
from pipediag.encoding.text import harmless_json
from pipediag.facts.devices import block_start_ms, full_name, profile_clock
from pipediag.facts.names import RUN_PART, run_id
from pipediag.reporters.words import labels
from pipediag.session.devices import DeviceActivity
from pipediag.session.model import Session
from pipediag.trace.events import Times
from pipediag.vocabulary import POOLS


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
        self._metadata(pid, 0, "process_name", name=name)
        return pid

    def track(self, pid: int, name: str) -> Track:
        """Add a thread to a process, below those that it has.

        ui.perfetto.dev shows the threads of a process in the order of their ids, and Chrome's own
        viewer in that of their sort indexes.
        """
        track = Track(pid, next(self._ids))
        self._metadata(pid, track.tid, "thread_name", name=name)
        self._metadata(pid, track.tid, "thread_sort_index", sort_index=track.tid)
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

    def instant(self, track: Track, time_ns: int, name: str, arguments: Mapping[str, Any]) -> None:
        """Write an event without a duration."""
        self._write(
            [
                f'{{"ph":"i","s":"t","pid":{track.pid},"tid":{track.tid},"ts":{self._time(time_ns)},'
                f'"name":{encoded(name)},{arguments_of(arguments)}}}'
            ]
        )

    def counter(
        self, pid: int, name: str, unit: str, times_ns: Times, values: Sequence[float]
    ) -> None:
        """Write a value that changes at these times, shown below the threads."""
        self._write(
            f'{{"ph":"C","pid":{pid},"ts":{self._time(time)},"name":{encoded(name)},'
            f'"args":{{{encoded(unit)}:{value:.6g}}}}}'
            for time, value in zip(times_ns.tolist(), values, strict=True)
        )

    def finish(self, other_data: Mapping[str, Any]) -> None:
        """Close the trace; `other_data` is shown under "Info and stats"."""
        self._stream.write(f'\n],"otherData":{encoded(other_data)}}}\n')

    def _time(self, ns: int) -> str:
        ns -= self.origin_ns
        return f"{ns // 1000}.{ns % 1000:03d}"

    def _metadata(self, pid: int, tid: int, what: str, /, **arguments: str | int) -> None:
        self._write(
            [f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{what}",{arguments_of(arguments)}}}']
        )

    def _write(self, events: Iterable[str]) -> None:
        write = self._stream.write
        for event in events:
            write(event if self._first else ",\n" + event)
            self._first = False


def encoded(value: Any) -> str:
    """Return a value as JSON without blanks; what is no UTF-8 in a profile becomes escapes."""
    return harmless_json(json.dumps(value, separators=(",", ":"), default=str))


def arguments_of(values: Mapping[str, Any]) -> str:
    """Return the `args` of an event, without what is None."""
    return f'"args":{encoded({key: value for key, value in values.items() if value is not None})}'


SESSION_TRACE_FILE = "session.perfetto.json"
_MOST_NS = 2.0**61
"""Differences and sums of two such times still fit into 64 bits."""
_Slice = tuple[str, float, float, str, dict[str, Any]]
"""Track, start and length in milliseconds, name, arguments."""


def files(session: Session) -> Iterator[tuple[str, str]]:
    """Yield the session as a trace: run, windows, steps, trials, gaps and host on one clock.

    The profile itself is not in it: `pipediag trace DIR/trace -o OTHER` writes that one.
    """
    stream = io.StringIO()
    writer = TraceWriter(stream)
    # Longest first where several begin at once, so that they nest.
    slices = sorted(_slices(session), key=lambda one: (one[1], -one[2]))
    starts = [start for _, start, *_ in slices[:1]]
    starts += [sample.at_ms for sample in session.host_samples]
    writer.origin_ns = _ns(min(starts, default=0.0))
    pid = writer.process("pipediag")
    idle = dict.fromkeys(map(_idle_track, session.devices))
    for name in ("Run", "Windows", "Steps", "Trials", *idle):
        shown = [one for one in slices if one[0] == name]
        if shown:
            writer.slices(
                writer.track(pid, name),
                np.array([_ns(start) for _, start, *_ in shown], np.int64),
                np.array([_ns(start + length) for _, start, length, *_ in shown], np.int64),
                [encoded(called) for *_, called, _ in shown],
                [arguments_of(arguments) for *_, arguments in shown],
            )
    _write_host(session, writer, pid)
    writer.finish({"pipediag_version": __version__, "run_id": run_id(session)})
    yield SESSION_TRACE_FILE, stream.getvalue()


def _slices(session: Session) -> Iterator[_Slice]:
    for span in session.run.spans if session.run else []:
        name = RUN_PART[span.part] if span.part else "pipediag"
        yield "Run", span.start_ms, span.duration_ms, name, {"what": span.what}
    for one in session.windows:
        shown = one.model_dump(include={"loop_id", "steps", "reason"})
        yield "Windows", one.start_ms, one.duration_ms, one.kind, shown
    for row in session.step_rows:
        shown = {"window": row.window, "batches": row.batches}
        yield "Steps", row.start_ms, row.duration_ms, f"step {row.index}", shown
        if row.input_wait_ms:
            waited = min(row.input_wait_ms, row.duration_ms)
            yield "Steps", row.start_ms, waited, labels.step_class("input_wait"), {}
    runs = [session.trials] if session.trials else []
    for run in (*runs, *session.evaluation_trials):
        for block in run.blocks:
            start_ms = block_start_ms(run, block)
            if start_ms is not None:
                shown = {"round": block.round, "examples_per_s": block.examples_per_s}
                yield "Trials", start_ms, block.duration_ms, block.arm, shown
    yield from _gaps(session)


def _gaps(session: Session) -> Iterator[_Slice]:
    clock = profile_clock(session)
    if clock is None:
        return
    for device in session.devices:
        for gap in device.gaps:
            shown = gap.model_dump(include={"op_id", "iterator", "doing"})
            cause = labels.gap_cause(gap.cause)
            yield _idle_track(device), clock.run_ms(gap.start_ms), gap.duration_ms, cause, shown


def _idle_track(device: DeviceActivity) -> str:
    return f"{full_name(device)} idle"


def _write_host(session: Session, writer: TraceWriter, pid: int) -> None:
    samples = session.host_samples
    if not samples:
        return
    times = np.array([_ns(sample.at_ms) for sample in samples], np.int64)
    writer.counter(pid, "CPU", "percent", times, [sample.cpu_percent for sample in samples])
    for pool in POOLS:
        used = [sample.pools_percent.get(pool, 0.0) for sample in samples]
        if any(used):
            writer.counter(pid, f"CPU: {labels.POOL[pool]}", "percent of a core", times, used)
    memory = [sample.rss_bytes / 2**20 for sample in samples]
    writer.counter(pid, "Resident memory", "MiB", times, memory)


def _ns(ms: float) -> int:
    # No run is as long as the limit: the session is a stranger's.
    return round(max(-_MOST_NS, min(_MOST_NS, ms * 1e6)))
