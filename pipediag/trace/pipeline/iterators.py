"""What each iterator of the input pipeline did within a window, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Indices, Line, StatValue, TraceEvents
from pipediag.trace.host.threads import events_named
from pipediag.trace.pipeline.records import IteratorKey, IteratorRecord, Records, Spans, kind_of

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
    key: IteratorKey, record: IteratorRecord, window: Window, element_bytes: float | None
) -> IteratorActivity:
    path, names = key
    inside = [(line, _beginning(line, indices, window)) for line, indices in record.calls]
    settings = _latest_stats(inside)
    return IteratorActivity(
        path=path,
        kind=kind_of(path),
        names=names,
        asynchronous=record.asynchronous,
        calls=sum(len(indices) for _, indices in inside),
        total_ns=_time_in(record.call_spans, window),
        self_ns=_time_in(record.work, window),
        wait_ns=_time_in(record.waits, window) if record.asynchronous else None,
        parallelism=_integer(settings, "parallelism"),
        autotune=_boolean(settings, "autotune"),
        buffer_size=_integer(settings, "buffer_size", "buffer_limit", "max_batch_results"),
        buffered_elements=_mean(inside, "buffered_elements"),
        batch_size=_integer(settings, "batch_size"),
        element_bytes=element_bytes if kind_of(path) == "Root" else None,
    )


def _batch_bytes(events: TraceEvents, window: Window) -> float | None:
    calls = [
        (line, _beginning(line, events_named(line, "IteratorGetNext"), window))
        for line in events.host_lines
    ]
    return _mean(calls, "element_size")


def _mean(calls: list[tuple[Line, Indices]], stat: str) -> float | None:
    """The mean of a statistic over the calls that have it."""
    found = [line.statistics.integers(stat, indices) for line, indices in calls]
    values: NDArray[np.int64] = np.concatenate(
        [np.empty(0, np.int64), *(values[present] for values, present in found)]
    )
    return float(values.mean()) if len(values) else None


def _beginning(line: Line, indices: Indices, window: Window) -> Indices:
    starts = line.start_ns[indices]
    return indices[(window[0] <= starts) & (starts < window[1])]


def _time_in(spans: Spans, window: Window) -> int:
    """Time inside the window; spans that overlap count each."""
    inside = np.minimum(spans[:, 1], window[1]) - np.maximum(spans[:, 0], window[0])
    return int(np.maximum(inside, 0).sum())


def _latest_stats(calls: list[tuple[Line, Indices]]) -> dict[str, StatValue]:
    """The statistics of the last call: autotuning changes the settings on the way."""
    last = [(line, int(indices[-1])) for line, indices in calls if len(indices)]
    if not last:
        return {}
    line, index = max(last, key=lambda call: call[0].start_ns[call[1]])
    return line.stats(index)


def _integer(stats: dict[str, StatValue], *names: str) -> int | None:
    found = (stats[name] for name in names if name in stats)
    return next((value for value in found if isinstance(value, int)), None)


def _boolean(stats: dict[str, StatValue], name: str) -> bool | None:
    return stats[name] in ("true", 1) if name in stats else None
