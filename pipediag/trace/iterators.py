"""What each iterator of the input pipeline did within a window, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from pipediag.trace.nesting import Span
from pipediag.trace.pipeline import IteratorKey, IteratorRecord, Records, kind_of
from pipediag.trace.reader import Line, StatValue, TraceEvents
from pipediag.trace.threads import events_named

Window = tuple[int, int]


@dataclass(frozen=True)
class IteratorActivity:
    """One iterator of the pipeline as TensorFlow ran it; `pipeline` says how time is attributed."""

    path: str
    """Without `Iterator::` and instance numbers: `Root::MapAndBatch::Map`."""
    kind: str
    """Last part of the path."""
    names: tuple[str, ...]
    """The `name=` of every operation fused into it; empty where the user's code gave none."""
    asynchronous: bool
    """It works on threads of its own."""
    calls: int
    """GetNext calls that began in the window: elements, and the calls that found the end."""
    total_ns: int
    """Time in those calls, with what they called."""
    self_ns: int
    """Time it worked itself, summed over its threads and its parallel function calls."""
    wait_ns: int | None
    """Time callers waited for it; None for a sequential iterator, whose caller does its work."""
    parallelism: int | None
    autotune: bool | None
    buffer_size: int | None
    buffered_elements: float | None
    """Mean over the calls that say it."""
    batch_size: int | None
    element_bytes: float | None
    """Mean size of what GetNext handed over; a profile has it for the root alone."""


def iterator_activity(
    events: TraceEvents, records: Records, window: Window
) -> list[IteratorActivity]:
    """Every iterator that was called or worked in the window, by path.

    `window` is start and end in nanoseconds; what crosses its edge counts by the part inside.
    """
    sizes = _batch_bytes(events, window)
    found = [_describe(key, records[key], window, sizes) for key in sorted(records)]
    return [iterator for iterator in found if iterator.calls or iterator.self_ns]


def _describe(
    key: IteratorKey, record: IteratorRecord, window: Window, sizes: list[int]
) -> IteratorActivity:
    path, names = key
    inside = [call for call in record.calls if _begins(*call, window)]
    settings = _latest_stats(inside)
    buffered = [
        float(value)
        for line, index in inside
        if (value := line.stat(index, "buffered_elements")) is not None
    ]
    return IteratorActivity(
        path=path,
        kind=kind_of(path),
        names=names,
        asynchronous=record.asynchronous,
        calls=len(inside),
        total_ns=_time_in(record.call_spans, window),
        self_ns=_time_in(record.work, window),
        wait_ns=_time_in(record.waits, window) if record.asynchronous else None,
        parallelism=_integer(settings, "parallelism"),
        autotune=_boolean(settings, "autotune"),
        buffer_size=_integer(settings, "buffer_size", "buffer_limit", "max_batch_results"),
        buffered_elements=fmean(buffered) if buffered else None,
        batch_size=_integer(settings, "batch_size"),
        element_bytes=fmean(sizes) if sizes and kind_of(path) == "Root" else None,
    )


def _batch_bytes(events: TraceEvents, window: Window) -> list[int]:
    sizes = [
        line.stat(index, "element_size")
        for line in events.host_lines
        for index in events_named(line, "IteratorGetNext")
        if _begins(line, index, window)
    ]
    return [size for size in sizes if isinstance(size, int)]


def _begins(line: Line, index: int, window: Window) -> bool:
    return bool(window[0] <= line.start_ns[index] < window[1])


def _time_in(spans: list[Span], window: Window) -> int:
    """Time inside the window; spans that overlap count each."""
    return sum(max(0, min(end, window[1]) - max(start, window[0])) for start, end in spans)


def _latest_stats(calls: list[tuple[Line, int]]) -> dict[str, StatValue]:
    """The statistics of the last call: autotuning changes the settings on the way."""
    if not calls:
        return {}
    line, index = max(calls, key=lambda call: call[0].start_ns[call[1]])
    return line.stats(index)


def _integer(stats: dict[str, StatValue], *names: str) -> int | None:
    found = (stats[name] for name in names if name in stats)
    return next((value for value in found if isinstance(value, int)), None)


def _boolean(stats: dict[str, StatValue], name: str) -> bool | None:
    return stats[name] in ("true", 1) if name in stats else None
