"""When each iterator of the input pipeline worked, thread by thread.

An `Iterator::Root::A::B` event is one GetNext call of B, made by A on A's thread.

- A sequential operation works inside its call, on the caller's thread. Its work is the call less
  the calls that it makes; a sequential map's function runs within that, whatever thread TensorFlow
  runs it on.
- An asynchronous one (prefetch, parallel map, map-and-batch, parallel interleave) works on threads
  of its own, and its call only waits for a result. Its work is the `*Produce` events less the calls
  nested in them, and each call of its function: an `InstantiatedCapturedFunction::RunAsync` inside
  a `*Produce` and the executor's events with the same step id. Overlapping events of one function
  call count once, parallel calls count each. A `*Produce` event belongs to the parent that its
  nested call names.

A loop over a dataset inside a graph has iterators of its own above the input pipeline's, called
`ReduceIterator::Root::Prefetch::Scan` or alike. They are left out: the scan takes Root's place.

What a profile cannot say: CPU time (a function that sleeps or waits for the interpreter lock counts
as working), the time of operations inside a function that wait without a thread, and the work of
functions that began before the profile did.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pipediag.trace.nesting import Nested, Span, nested_events
from pipediag.trace.reader import Line, TraceEvents
from pipediag.trace.threads import CAPTURED_FUNCTION, EXECUTOR_WORK, events_named, step_id

IteratorKey = tuple[str, tuple[str, ...]]
"""Path and user names: the iterators of one pipeline in two epochs are one to a reader."""

_CALL = "Iterator::"
_RUN_ASYNC = CAPTURED_FUNCTION + "RunAsync"
_WORKER = re.compile(r"([A-Z]\w*?)(Produce|InitializeInput)$")
_ASYNCHRONOUS = ("Prefetch", "MapAndBatch", "Parallel")
_INSTANCE = re.compile(r"\[\d+\]")
_NUMBERED_NAME = re.compile(r"\w*Dataset\w*:\d+$")


@dataclass
class IteratorRecord:
    """The raw material on one iterator; spans of different threads may overlap."""

    asynchronous: bool
    calls: list[tuple[Line, int]] = field(default_factory=list)
    """Its GetNext calls: line and index of the event."""
    call_spans: list[Span] = field(default_factory=list)
    waits: list[Span] = field(default_factory=list)
    """When a caller waited for an asynchronous iterator."""
    work: list[Span] = field(default_factory=list)
    """When it worked, on its threads and in each call of its function."""


Records = dict[IteratorKey, IteratorRecord]


@dataclass
class _FunctionCall:
    """One asynchronous call of an iterator's function, over all threads."""

    owner: IteratorKey
    spans: list[Span]


class _Attribution:
    """Gathers the records, thread by thread."""

    def __init__(self, scan_names: frozenset[str]) -> None:
        self.records: Records = {}
        self._scans = scan_names
        self._calls = (_CALL, *(f"{name}::" for name in scan_names))
        self._keys: dict[tuple[str, int], IteratorKey] = {}
        self._keys_by_id: dict[int, IteratorKey] = {}
        self._functions: dict[int, _FunctionCall] = {}

    def add_calls(self, line: Line) -> None:
        """Every GetNext call on the thread."""
        for index in events_named(line, *self._calls):
            key = self._key(line, index)
            record = self.records.setdefault(key, IteratorRecord(_is_asynchronous(key)))
            record.calls.append((line, index))
            record.call_spans.append((int(line.start_ns[index]), int(line.end_ns[index])))

    def add_work(self, line: Line) -> None:
        """What calls and workers did themselves on the thread, and the functions they started."""
        relevant = [
            key
            for key, name in line.used_names.items()
            if name.startswith((*self._calls, _RUN_ASYNC))
            or name in self._scans
            or _WORKER.match(name)
        ]
        for event in nested_events(line, relevant):
            name = line.event_name(event.index)
            if worker := _WORKER.match(name):
                self._add_worker(line, event, worker.group(1))
                continue
            call = event.parent if name.startswith(_RUN_ASYNC) else event
            if call is not None and self._is_call(line, call):
                record = self.records[self._key(line, call.index)]
                (record.waits if record.asynchronous else record.work).extend(event.alone)

    def add_functions(self, line: Line) -> None:
        """What the thread executed of the functions that workers started."""
        if not self._functions:
            return
        for index in events_named(line, *EXECUTOR_WORK):
            call = self._functions.get(step_id(line, index))
            if call is not None:
                call.spans.append((int(line.start_ns[index]), int(line.end_ns[index])))

    def close(self) -> Records:
        """Counts overlapping events of one function call once."""
        for call in self._functions.values():
            self.records[call.owner].work.extend(_merged(call.spans))
        return self.records

    def _key(self, line: Line, index: int) -> IteratorKey:
        known = (line.event_name(index), step_id(line, index))
        if known not in self._keys:
            path = _path(known[0], self._scans)
            key = path, user_names(str(line.stat(index, "name") or ""))
            self._keys[known] = self._keys_by_id[known[1]] = key
        return self._keys[known]

    def _is_call(self, line: Line, event: Nested) -> bool:
        return line.event_name(event.index).startswith(self._calls)

    def _add_worker(self, line: Line, event: Nested, kind: str) -> None:
        if any(line.event_name(child.index) in self._scans for child in event.children):
            return
        started = []
        owner = None
        for child in event.children:
            if self._is_call(line, child):
                parent = int(line.stat(child.index, "parent_id") or 0)
                owner = owner or self._keys_by_id.get(parent)
            else:
                started.append(child)
        owner = owner or self._only_one(kind)
        if owner is None:
            return
        self.records[owner].work.extend(event.alone)
        for run in started:
            self._functions[step_id(line, run.index)] = _FunctionCall(owner, [run.span])

    def _only_one(self, kind: str) -> IteratorKey | None:
        """The iterator of that kind where the pipeline has exactly one."""
        found = [key for key in self.records if kind_of(key[0]).startswith(kind)]
        return found[0] if len(found) == 1 else None


def pipeline_records(events: TraceEvents, scan_names: frozenset[str] = frozenset()) -> Records:
    """Every iterator that the profile saw a call of.

    `scan_names` are the events of the loop inside a graph whose input it is, where there is one.
    """
    attribution = _Attribution(scan_names)
    for line in events.host_lines:
        attribution.add_calls(line)
    for line in events.host_lines:
        attribution.add_work(line)
    for line in events.host_lines:
        attribution.add_functions(line)
    return attribution.close()


def _path(event_name: str, scan_names: frozenset[str]) -> str:
    """The iterator that a call's event belongs to; instance numbers are dropped."""
    for scan in scan_names:
        if event_name.startswith(f"{scan}::"):
            event_name = "Root" + event_name.removeprefix(scan)
    return _INSTANCE.sub("", event_name.removeprefix(_CALL))


def user_names(name: str) -> tuple[str, ...]:
    """The operations' own names in the statistic `name`: `fused(fused(a,b),c)` holds a, b and c.

    TensorFlow's substitute for a missing name (`RepeatDataset:25`) is none.
    """
    if name.startswith("fused(") and name.endswith(")"):
        parts = _split_arguments(name.removeprefix("fused(").removesuffix(")"))
        return tuple(found for part in parts for found in user_names(part))
    return () if not name or _NUMBERED_NAME.match(name) else (name,)


def _split_arguments(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _is_asynchronous(key: IteratorKey) -> bool:
    return kind_of(key[0]).startswith(_ASYNCHRONOUS)


def kind_of(path: str) -> str:
    """The iterator's kind: the last part of its path."""
    return path.rpartition("::")[2]


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
