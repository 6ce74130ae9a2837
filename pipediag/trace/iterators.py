"""What each iterator of the input pipeline did within a window, in numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from pipediag.trace.intervals import clip, normalise, total
from pipediag.trace.pipeline import IteratorKey, IteratorRecord, Records, kind_of
from pipediag.trace.reader import Line, StatValue, TraceEvents
from pipediag.trace.threads import events_named

Window = tuple[int, int]
Value = TypeVar("Value")


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
    """Time it worked itself, summed over its threads."""
    wait_ns: int | None
    """Time callers waited for it; None for a sequential iterator, where the caller's thread works."""
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
    stats = [line.stats(index) for line, index in record.calls if _begins(line, index, window)]
    wait_ns = sum(total(clip(spans, *window)) for spans in record.waits)
    buffered = [
        value for entry in stats if (value := _integer(entry, "buffered_elements")) is not None
    ]
    return IteratorActivity(
        path=path,
        kind=kind_of(path),
        names=names,
        asynchronous=record.asynchronous,
        calls=len(stats),
        total_ns=sum(_clipped(line, index, window) for line, index in record.calls),
        self_ns=sum(total(clip(spans, *window)) for spans in record.work.values()),
        wait_ns=wait_ns if record.asynchronous else None,
        parallelism=_latest(stats, _integer, "parallelism"),
        autotune=_latest(stats, _boolean, "autotune"),
        buffer_size=_latest(stats, _integer, "buffer_size", "buffer_limit", "max_batch_results"),
        buffered_elements=fmean(buffered) if buffered else None,
        batch_size=_latest(stats, _integer, "batch_size"),
        element_bytes=fmean(sizes) if sizes and kind_of(path) == "Root" else None,
    )


def _batch_bytes(events: TraceEvents, window: Window) -> list[int]:
    sizes = [
        _integer(line.stats(index), "element_size")
        for line in events.host_lines
        for index in events_named(line, "IteratorGetNext")
        if _begins(line, index, window)
    ]
    return [size for size in sizes if size is not None]


def _begins(line: Line, index: int, window: Window) -> bool:
    return bool(window[0] <= line.start_ns[index] < window[1])


def _clipped(line: Line, index: int, window: Window) -> int:
    return total(clip(normalise([line.start_ns[index]], [line.end_ns[index]]), *window))


def _latest(
    stats: list[dict[str, StatValue]],
    read: Callable[[dict[str, StatValue], str], Value | None],
    *names: str,
) -> Value | None:
    """The last value recorded under one of the names: autotuning changes them on the way."""
    values = (read(entry, name) for entry in reversed(stats) for name in names)
    return next((value for value in values if value is not None), None)


def _integer(stats: dict[str, StatValue], name: str) -> int | None:
    value = stats.get(name)
    return value if isinstance(value, int) else None


def _boolean(stats: dict[str, StatValue], name: str) -> bool | None:
    value = stats.get(name)
    return None if value is None else value in ("true", 1)
