"""Iterators of the input pipeline: when each worked, thread by thread, and its settings.

An `Iterator::Root::A::B` event is one GetNext call of B, made by A on A's thread.

- A sequential operation works inside its call, less the calls that it makes; a sequential map's
  function runs within that, whatever thread TensorFlow runs it on.
- An asynchronous one (prefetch, parallel map, map-and-batch, parallel interleave) works on threads
  of its own, and its call only waits for a result. Its work is the `*Produce` events less the calls
  nested in them, and each call of its function: an `InstantiatedCapturedFunction::RunAsync` inside
  a `*Produce` and the executor's events with the same step id. A `*Produce` event belongs to the
  parent that its nested call names.

A profile has no CPU time: a function that sleeps or waits for the GIL counts as working.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipediag.tensorflow_names import works_ahead
from pipediag.trace.events import Indices, Line, StatValue, TraceEvents
from pipediag.trace.intervals import EMPTY, normalise
from pipediag.trace.threads import CAPTURED_FUNCTION, TOP, Nesting, nested_events

IteratorKey = tuple[str, tuple[str, ...]]
"""Path and user names: the iterators of one pipeline in two epochs are one to a reader."""
Spans = NDArray[np.int64]
"""Shape (n, 2): start and end in nanoseconds, in any order; they may overlap."""

_CALL = "Iterator::"
_RUN_ASYNC = CAPTURED_FUNCTION + "RunAsync"
_WORKER = re.compile(r"([A-Z]\w*?)(Produce|InitializeInput)$")
_INSTANCE = re.compile(r"\[\d+\]")
_NUMBERED_NAME = re.compile(r"\w*Dataset\w*:\d+$")
_UNKNOWN = -1

Window = tuple[int, int]


@dataclass
class IteratorRecord:
    """Time of one iterator; spans of different threads may overlap."""

    asynchronous: bool
    calls: list[tuple[Line, Indices]] = field(default_factory=list)
    """Its GetNext calls: line, and indices of the events."""
    work: Spans = field(default_factory=lambda: EMPTY)
    """Times at which it worked, on its threads and in each call of its function."""


Records = dict[IteratorKey, IteratorRecord]


class _Attribution:
    """Gathers the records, thread by thread; iterators are numbered in order of finding."""

    def __init__(self) -> None:
        self._numbers: dict[IteratorKey, int] = {}
        self._records: list[IteratorRecord] = []
        self._number_of_id: dict[int, int] = {}
        self._called: dict[int, tuple[Indices, NDArray[np.intp]]] = {}
        """By line: its calls, and the iterator that each calls."""
        self._work: list[list[Spans]] = []
        self._started: list[tuple[NDArray[np.int64], NDArray[np.intp], Spans]] = []
        """Asynchronous calls of iterators' functions: ids, iterators, and spans of their starts."""
        self._executed: list[tuple[NDArray[np.int64], Spans]] = []
        """Work on these calls: ids and spans."""

    def add_calls(self, line: Line) -> None:
        """Take every GetNext call on the thread."""
        indices = line.starting(_CALL)
        if not len(indices):
            return
        ids = line.step_ids(indices)
        different, rank = np.unique(ids, return_inverse=True)
        pairs = line.name_ids[indices].astype(np.int64) * len(different) + rank
        _, first, group = np.unique(pairs, return_index=True, return_inverse=True)
        of_group = np.array([self._number(line, int(indices[place])) for place in first])
        for number, place in zip(of_group.tolist(), first.tolist(), strict=True):
            self._number_of_id[int(ids[place])] = number
        numbers = of_group[group]
        self._called[id(line)] = indices, numbers
        for number in np.unique(of_group).tolist():
            self._records[number].calls.append((line, indices[numbers == number]))

    def _number(self, line: Line, index: int) -> int:
        path = _INSTANCE.sub("", line.event_name(index).removeprefix(_CALL))
        key = path, user_names(str(line.stats(index).get("name", "")))
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers)
            self._records.append(IteratorRecord(works_ahead(kind_of(path))))
            self._work.append([])
        return self._numbers[key]

    def add_work(self, line: Line) -> None:
        """Take the work of calls and workers on the thread, and the functions they started."""
        names = line.used_names
        workers = {key: found[1] for key, name in names.items() if (found := _WORKER.match(name))}
        runs = [key for key, name in names.items() if name.startswith(_RUN_ASYNC)]
        calls = [key for key, name in names.items() if name.startswith(_CALL)]
        nesting = nested_events(line, {*workers, *runs, *calls})
        if not len(nesting.indices):
            return
        is_worker = np.isin(nesting.name_ids, list(workers))
        is_run = np.isin(nesting.name_ids, runs)
        own = np.full(len(nesting.indices), _UNKNOWN, np.intp)
        if id(line) in self._called:
            indices, numbers = self._called[id(line)]
            own[np.searchsorted(nesting.indices, indices)] = numbers
        # A function's run inside a call belongs to that call.
        around = np.where(nesting.parents == TOP, _UNKNOWN, own[nesting.parents])
        number = np.where(is_run, around, own)
        if is_worker.any():
            owners = self._owners(nesting, is_worker, own, workers)
            number = np.where(is_worker, owners, number)
            started = is_run & (nesting.parents != TOP) & (owners[nesting.parents] >= 0)
            started &= is_worker[nesting.parents]
            ids, spans = line.step_ids(nesting.indices[started]), nesting.spans[started]
            self._started.append((ids, owners[nesting.parents[started]], spans))
        places, spans = nesting.alone()
        for found in np.unique(number[number >= 0]).tolist():
            of_it = number[places] == found
            if self._records[found].asynchronous:
                # Its callers only wait for it.
                of_it &= is_worker[places]
            self._work[found].append(spans[of_it])

    def _owners(
        self,
        nesting: Nesting,
        is_worker: NDArray[np.bool_],
        own: NDArray[np.intp],
        workers: dict[int, str],
    ) -> NDArray[np.intp]:
        """Return for each worker the iterator for which it works."""
        owners = np.full(len(nesting.indices), _UNKNOWN, np.intp)
        within = (nesting.parents != TOP) & is_worker[nesting.parents]
        called = np.flatnonzero(within & (own != _UNKNOWN))
        parent_ids = nesting.line.integers("parent_id", nesting.indices[called])
        different, which = np.unique(parent_ids, return_inverse=True)
        found = [self._number_of_id.get(key, _UNKNOWN) for key in different.tolist()]
        numbers = np.array(found, np.intp)[which]
        known = numbers != _UNKNOWN
        # Written from the last to the first: the first call that knows its parent decides.
        owners[nesting.parents[called[known]][::-1]] = numbers[known][::-1]
        for key, kind in workers.items():
            alike = [n for it, n in self._numbers.items() if kind_of(it[0]).startswith(kind)]
            if len(alike) == 1:
                owners[(nesting.name_ids == key) & (owners == _UNKNOWN)] = alike[0]
        return owners

    def add_functions(self, line: Line) -> None:
        """Take the thread's work on functions that workers started."""
        if self._started:
            indices, ids = line.executor_work
            known = np.isin(ids, np.concatenate([ids for ids, _, _ in self._started]))
            self._executed.append((ids[known], line.spans(indices[known])))

    def close(self) -> Records:
        """Return all records; where events of one function call overlap, they count once."""
        if self._started:
            pieces = [(ids, spans) for ids, _, spans in self._started] + self._executed
            found = np.concatenate([ids for ids, _, _ in self._started])
            ids, first = np.unique(found, return_index=True)
            owners = np.concatenate([owners for _, owners, _ in self._started])[first]
            calls = np.searchsorted(ids, np.concatenate([ids for ids, _ in pieces]))
            calls, spans = _merged(calls, np.concatenate([spans for _, spans in pieces]))
            for number in np.unique(owners[calls]).tolist():
                self._work[number].append(spans[owners[calls] == number])
        for number, record in enumerate(self._records):
            record.work = np.concatenate([EMPTY, *self._work[number]])
        return dict(zip(self._numbers, self._records, strict=True))


def pipeline_records(events: TraceEvents) -> Records:
    """Return every iterator that was called."""
    attribution = _Attribution()
    for line in events.host_lines:
        attribution.add_calls(line)
    for line in events.host_lines:
        attribution.add_work(line)
    for line in events.host_lines:
        attribution.add_functions(line)
    return attribution.close()


def user_names(name: str) -> tuple[str, ...]:
    """Return operations' own names in the statistic `name`: a, b and c of `fused(fused(a,b),c)`.

    TensorFlow's substitute for a missing name (`RepeatDataset:25`) is none.
    """
    parts = re.split(r"fused\(|[,)]", name) if name.startswith("fused(") else [name]
    return tuple(part for part in parts if part and not _NUMBERED_NAME.match(part))


def kind_of(path: str) -> str:
    """Return the iterator's kind: the last part of its path."""
    return path.rpartition("::")[2]


def _merged(groups: NDArray[np.intp], spans: Spans) -> tuple[NDArray[np.intp], Spans]:
    """Return the union of the spans of each group: groups and spans, ordered by both."""
    edges, ranks = np.unique(spans, return_inverse=True)
    # Groups come one after the other, so that none overlaps the next.
    lifted = ranks.reshape(-1, 2) + (groups * len(edges))[:, np.newaxis]
    merged = normalise(lifted[:, 0], lifted[:, 1])
    found = merged[:, 0] // max(len(edges), 1)
    return found, edges[merged - (found * len(edges))[:, np.newaxis]]


@dataclass(frozen=True)
class IteratorActivity:
    """Work of one iterator of the pipeline within a window."""

    path: str
    """Without `Iterator::` and instance numbers: `Root::MapAndBatch::Map`."""
    names: tuple[str, ...]
    """The `name=` of every operation fused into it; empty where the user's code gave none."""
    calls: int
    """GetNext calls that began in the window: elements, and the calls that found the end."""
    self_ns: int
    """Time it worked itself, summed over its threads and its parallel function calls."""
    parallelism: int | None = None
    autotune: bool | None = None
    buffer_size: int | None = None
    buffered_elements: float | None = None
    """Mean over the calls that say it."""

    @property
    def kind(self) -> str:
        return kind_of(self.path)


def iterator_activity(records: Records, window: Window) -> list[IteratorActivity]:
    """Return every iterator that was called or worked in the window, by path.

    What crosses the edge of the window counts by the part inside.
    """
    found = [_describe(key, records[key], window) for key in sorted(records)]
    return [iterator for iterator in found if iterator.calls or iterator.self_ns]


def _describe(key: IteratorKey, record: IteratorRecord, window: Window) -> IteratorActivity:
    path, names = key
    inside: list[tuple[Line, Indices]] = []
    for line, indices in record.calls:
        starts = line.start_ns[indices]
        inside.append((line, indices[(window[0] <= starts) & (starts < window[1])]))
    settings: dict[str, StatValue] = {}
    if last := [(line, int(indices[-1])) for line, indices in inside if len(indices)]:
        # Autotuning changes settings during the run.
        line, index = max(last, key=lambda call: call[0].start_ns[call[1]])
        settings = line.stats(index)
    found = [line.statistics.integers("buffered_elements", indices) for line, indices in inside]
    buffered = np.concatenate([np.empty(0), *(values[present] for values, present in found)])
    return IteratorActivity(
        path=path,
        names=names,
        calls=sum(len(indices) for _, indices in inside),
        # Spans that overlap count each.
        self_ns=int(np.diff(np.clip(record.work, *window)).sum()),
        parallelism=_integer(settings, "parallelism"),
        autotune=settings["autotune"] in ("true", 1) if "autotune" in settings else None,
        buffer_size=_integer(settings, "buffer_size", "buffer_limit", "max_batch_results"),
        buffered_elements=float(buffered.mean()) if len(buffered) else None,
    )


def _integer(stats: dict[str, StatValue], *names: str) -> int | None:
    found = (stats[name] for name in names if name in stats)
    return next((value for value in found if isinstance(value, int)), None)
