"""Timeline that the child writes as the run goes: spans, and lines that were seen running.

One record a line, appended at once, so that a killed process leaves all but its last one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pipediag.session.messages import decode, kinds_of
from pipediag.vocabulary import SpanKind


@dataclass(frozen=True)
class Span:
    """A stretch of the script's thread; those of one thread lie apart or within each other. It is
    written first while it lasts, and once more when it has ended."""

    id: int
    kind: SpanKind
    start_ns: int
    end_ns: int | None
    """End; None while it lasts, and for good where the process was killed meanwhile."""
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
    """The mean moment of the samples that met it; None in what was written before that was kept."""


@dataclass(frozen=True)
class SeenLines:
    """Lines that were running between two moments, outside of all that has a span of its own."""

    start_ns: int
    end_ns: int
    lines: tuple[SeenLine, ...]

    def __post_init__(self) -> None:
        # As written, they are objects of JSON.
        lines: Iterable[Any] = self.lines
        known = (SeenLine(**one) if isinstance(one, dict) else one for one in lines)
        object.__setattr__(self, "lines", tuple(known))


@dataclass(frozen=True)
class Unwritten:
    """Moment from which on nothing was written, although the script went on."""

    since_ns: int


@dataclass
class Timeline:
    """All of it, spans in the order in which they began."""

    spans: list[Span] = field(default_factory=list)
    seen: list[SeenLines] = field(default_factory=list)
    until_ns: int | None = None
    """Time from which on nothing was written although the script went on."""

    @property
    def last_ns(self) -> int | None:
        """Return the last moment that anything is known of; None where nothing was written."""
        ends = [one.end_ns or one.start_ns for one in self.spans]
        return max([*ends, *(one.end_ns for one in self.seen)], default=None)


def parse_timeline(lines: Iterable[bytes]) -> Timeline:
    """Parse what was written; a line that was cut, or is none of these, is passed over."""
    spans: dict[int, Span] = {}
    timeline = Timeline()
    for line in lines:
        match decode(line, _WRITTEN):
            case Span() as span:
                spans[span.id] = span
            case SeenLines() as seen:
                timeline.seen.append(seen)
            case Unwritten(since_ns):
                timeline.until_ns = since_ns
    timeline.spans = sorted(spans.values(), key=lambda span: (span.start_ns, span.id))
    return timeline


_WRITTEN = kinds_of(Span | SeenLines | Unwritten)


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
    asked_bytes: int | None = None
    """Bytes that it asked for in reads, of files on a disk, in memory or of another kind."""
    available_bytes: int | None = None
    io_wait_ticks: int | None = None
    """Ticks in which a CPU of the machine was idle with disk reads or writes outstanding."""
    machine_ticks: int | None = None
    """Ticks of all CPUs of the machine, idle ones included."""
    allowed_busy_ns: int | None = None
    """Time of the CPUs that the process may use, in which they worked for any program."""
    allowed_idle_ns: int | None = None
    """Time of the same CPUs in which they had nothing to do."""
    gpus: tuple[GpuReading, ...] = ()


@dataclass(frozen=True)
class HostTrack:
    """All readings of one run, oldest first."""

    pid: int
    readings: tuple[HostReading, ...] = ()
    threads: dict[int, ThreadSeen] = field(default_factory=dict)
    missing: str | None = None
    """Reason why there are no readings; None where there are some."""
