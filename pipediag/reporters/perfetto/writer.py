"""Chrome's trace event format, written event by event, as ui.perfetto.dev reads it.

Times are microseconds with three decimals, so that no nanosecond is lost. Process and thread ids
are counted here: those of a profile may clash between hosts, or be too large.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any, TextIO

from pipediag.encoding.text import harmless_json
from pipediag.trace.events import Times


@dataclass(frozen=True)
class Track:
    """One thread of the trace."""

    pid: int
    tid: int


class TraceWriter:
    """Writes the one JSON object that a trace is; `finish` closes it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        # No thread has the id of a process: it would be taken for its main thread.
        self._ids = count(1)
        self._first = True
        self.origin_ns = 0
        """Subtracted from every time that is written."""
        stream.write('{"displayTimeUnit":"ns","traceEvents":[\n')

    def process(self, name: str) -> int:
        """Adds a process.

        ui.perfetto.dev shows those with the most events first, whatever sort index they have.
        """
        pid = next(self._ids)
        self._metadata(pid, 0, "process_name", name=name)
        return pid

    def track(self, pid: int, name: str) -> Track:
        """Adds a thread to a process, below those that it has.

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
        """Writes events with a duration, in order of their start.

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
        """Writes an event without a duration."""
        self._write(
            [
                f'{{"ph":"i","s":"t","pid":{track.pid},"tid":{track.tid},"ts":{self._time(time_ns)},'
                f'"name":{encoded(name)},{arguments_of(arguments)}}}'
            ]
        )

    def counter(
        self, pid: int, name: str, unit: str, times_ns: Times, values: Sequence[float]
    ) -> None:
        """Writes a value that changes at these times; shown below the threads."""
        self._write(
            f'{{"ph":"C","pid":{pid},"ts":{self._time(time)},"name":{encoded(name)},'
            f'"args":{{{encoded(unit)}:{value:.6g}}}}}'
            for time, value in zip(times_ns.tolist(), values, strict=True)
        )

    def finish(self, other_data: Mapping[str, Any]) -> None:
        """Closes the trace; `other_data` is shown under "Info and stats"."""
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
    """JSON without blanks; what is no UTF-8 in a profile comes as escapes."""
    return harmless_json(json.dumps(value, separators=(",", ":"), default=str))


def arguments_of(values: Mapping[str, Any]) -> str:
    """The `args` of an event, without what is None."""
    return f'"args":{encoded({key: value for key, value in values.items() if value is not None})}'
