"""Timeline that the child writes as the run goes: spans, and lines that were seen running.

One JSON array a line, appended at once, so that a killed process leaves all but its last one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from typing import Any

from pipediag.vocabulary import SpanKind

_SPAN, _LINES, _UNTIL = "span", "lines", "until"


@dataclass(frozen=True)
class Span:
    """A stretch of the script's thread; those of one thread lie apart or within each other."""

    id: int
    kind: SpanKind
    start_ns: int
    end_ns: int | None
    """None while it lasts, and for good where the process was killed meanwhile."""
    name: str = ""
    """Loop, method, callback or function, by kind."""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class SeenLine:
    """A line of the script's code that was running, by samples of its thread."""

    file: str
    line: int
    function: str
    importing: bool
    """True if it was importing a module."""
    ns: int
    in_framework: bool = False
    """True if it was waiting for TensorFlow's, Keras's or JAX's own code."""
    at_ns: int | None = None
    """The mean moment of the looks that met it; None in what was written before that was kept."""


@dataclass(frozen=True)
class SeenLines:
    """Lines that were running between two moments, outside of all that has a span of its own."""

    start_ns: int
    end_ns: int
    lines: tuple[SeenLine, ...]


@dataclass
class Timeline:
    """All of it, spans in the order in which they began."""

    spans: list[Span] = field(default_factory=list)
    seen: list[SeenLines] = field(default_factory=list)
    until_ns: int | None = None
    """From when on nothing was written although the script went on; None where all of it was."""

    @property
    def last_ns(self) -> int | None:
        """Return the last moment that anything is known of; None where nothing was written."""
        ends = [one.end_ns or one.start_ns for one in self.spans]
        return max([*ends, *(one.end_ns for one in self.seen)], default=None)


def span_line(span: Span) -> bytes:
    """Return a span as written, first while it lasts and once more when it has ended."""
    values = (span.id, span.kind, span.start_ns, span.end_ns, span.name, span.file, span.line)
    return _encoded([_SPAN, *values])


def seen_line(seen: SeenLines) -> bytes:
    """Seen lines as written."""
    lines = [list(astuple(one)) for one in seen.lines]
    return _encoded([_LINES, seen.start_ns, seen.end_ns, lines])


def until_line(now_ns: int) -> bytes:
    """Return the moment, as written, from which on nothing is known."""
    return _encoded([_UNTIL, now_ns])


def parse_timeline(lines: Iterable[bytes]) -> Timeline:
    """Parse what was written; a line that was cut, or is none of these, is passed over."""
    spans: dict[int, Span] = {}
    seen: list[SeenLines] = []
    until_ns: int | None = None
    for line in lines:
        try:
            kind, *values = json.loads(line)
            if kind == _SPAN:
                span = Span(*values)
                spans[span.id] = span
            elif kind == _LINES:
                start_ns, end_ns, listed = values
                seen.append(SeenLines(start_ns, end_ns, tuple(SeenLine(*one) for one in listed)))
            elif kind == _UNTIL:
                (until_ns,) = values
        except (ValueError, TypeError):
            continue
    in_order = sorted(spans.values(), key=lambda span: (span.start_ns, span.id))
    return Timeline(in_order, seen, until_ns)


def _encoded(values: list[Any]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode("ascii") + b"\n"


@dataclass(frozen=True)
class GpuReading:
    """Reading of one GPU from its driver."""

    name: str
    utilisation_percent: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None


@dataclass(frozen=True)
class ThreadSeen:
    """A thread of the process, by the name that the kernel shows, which may be its maker's."""

    tid: int
    name: str
    started_ticks: int
    """Clock ticks from boot to the thread's start; orders threads by age."""


@dataclass(frozen=True)
class HostReading:
    """One reading. Counters are cumulative unless said otherwise; None where not read this time."""

    at_ns: int
    cpu_ns: int
    """CPU time of the process, threads that have ended included."""
    rss_bytes: int
    thread_cpu_ns: dict[int, int] = field(default_factory=dict)
    """CPU time since the reading before, by thread, for threads that ran."""
    children_cpu_ns: int = 0
    """CPU time of the processes that this one started, such as data workers."""
    children: int = 0
    """Number of such processes alive."""
    read_bytes: int | None = None
    """Bytes fetched from storage; the page cache's hits are not among them."""
    available_bytes: int | None = None
    page_cache_bytes: int | None = None
    rss_peak_bytes: int | None = None
    io_wait_ticks: int | None = None
    """Ticks in which a CPU of the machine was idle with disk reads or writes outstanding."""
    machine_ticks: int | None = None
    """Ticks of all CPUs of the machine, idle ones included."""
    allowed_busy_ns: int | None = None
    """Of the CPUs that the process may use, in which one of them worked for whatever program."""
    allowed_idle_ns: int | None = None
    """Of the same CPUs, in which they had nothing to do."""
    gpus: tuple[GpuReading, ...] = ()


@dataclass(frozen=True)
class HostTrack:
    """All readings of one run, oldest first."""

    pid: int
    readings: tuple[HostReading, ...] = ()
    threads: dict[int, ThreadSeen] = field(default_factory=dict)
    missing: str | None = None
    """Why there are no readings; None where there are some."""
