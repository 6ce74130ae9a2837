"""When each iterator of the input pipeline worked, thread by thread.

An `Iterator::Root::A::B` event is one GetNext call of B, made by A on A's thread.

- A sequential operation works inside its call, on the caller's thread. Its work is the call less
  the calls that it makes; a sequential map's function runs within that, whatever thread TensorFlow
  runs it on.
- An asynchronous one (prefetch, parallel map, map-and-batch, parallel interleave) works on threads
  of its own, and its call only waits for a result. Its work is the `*Produce` events less the calls
  nested in them, plus its function: the executor's events that carry the step id of an
  `InstantiatedCapturedFunction::RunAsync` inside a `*Produce`. A `*Produce` event belongs to the
  parent that its nested call names.

What a profile cannot say: CPU time (a function that sleeps or waits for the interpreter lock counts
as working), the time of operations inside a function that wait without a thread, and the work of
functions that began before the profile did.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from pipediag.trace.intervals import EMPTY, Intervals, normalise, subtract, union
from pipediag.trace.nesting import nested_events
from pipediag.trace.reader import Line, StatValue, TraceEvents
from pipediag.trace.threads import CAPTURED_FUNCTION, EXECUTOR_WORK, events_named

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
    """The raw material on one iterator."""

    asynchronous: bool
    calls: list[tuple[Line, int]] = field(default_factory=list)
    """Its GetNext calls: line and index of the event."""
    waits: list[Intervals] = field(default_factory=list)
    """When a caller waited for an asynchronous iterator, call by call."""
    work: dict[int, Intervals] = field(default_factory=dict)
    """When it worked, by the id of the thread's line."""

    def add_work(self, line: Line, spans: Intervals) -> None:
        self.work[line.id] = union(self.work.get(line.id, EMPTY), spans)


Records = dict[IteratorKey, IteratorRecord]


def pipeline_records(events: TraceEvents) -> Records:
    """Every iterator that the profile saw a call of."""
    records: Records = {}
    keys_by_id: dict[int, IteratorKey] = {}
    for line in events.host_lines:
        for index in events_named(line, _CALL):
            stats = line.stats(index)
            key = iterator_key(line.event_name(index), stats)
            record = records.setdefault(key, IteratorRecord(_is_asynchronous(key)))
            record.calls.append((line, index))
            keys_by_id[int(stats.get("id", 0))] = key
    functions: dict[int, IteratorKey] = {}
    for line in events.host_lines:
        _add_thread(line, records, keys_by_id, functions)
    for line in events.host_lines:
        _add_functions(line, records, functions)
    return records


def iterator_key(event_name: str, stats: dict[str, StatValue]) -> IteratorKey:
    """The iterator that a call's event belongs to; instance numbers are dropped."""
    path = _INSTANCE.sub("", event_name.removeprefix(_CALL))
    return path, user_names(str(stats.get("name", "")))


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


def _add_thread(
    line: Line,
    records: Records,
    keys_by_id: dict[int, IteratorKey],
    functions: dict[int, IteratorKey],
) -> None:
    """Adds a thread's calls and workers, and notes whose function each step id is."""
    relevant = [
        key
        for key, name in line.used_names.items()
        if name.startswith((_CALL, _RUN_ASYNC)) or _WORKER.match(name)
    ]
    work: dict[IteratorKey, list[Intervals]] = defaultdict(list)
    for index, children in nested_events(line, relevant).items():
        name = line.event_name(index)
        calls = [child for child in children if line.event_name(child).startswith(_CALL)]
        alone = subtract(_spans(line, [index]), _spans(line, calls))
        if name.startswith(_CALL):
            key = iterator_key(name, line.stats(index))
            spans = records[key].waits if records[key].asynchronous else work[key]
            spans.append(alone)
        elif worker := _WORKER.match(name):
            owner = _owner(line, calls, keys_by_id) or _only_one(records, worker.group(1))
            if owner is None:
                continue
            work[owner].append(alone)
            for run in set(children) - set(calls):
                functions[int(line.stats(run).get("id", 0))] = owner
    for key, spans in work.items():
        records[key].add_work(line, union(*spans))


def _owner(line: Line, calls: list[int], keys_by_id: dict[int, IteratorKey]) -> IteratorKey | None:
    """The parent that the first nested call names."""
    if not calls:
        return None
    return keys_by_id.get(int(line.stats(calls[0]).get("parent_id", 0)))


def _only_one(records: Records, kind: str) -> IteratorKey | None:
    """The iterator of that kind where the pipeline has exactly one."""
    found = [key for key in records if kind_of(key[0]).startswith(kind)]
    return found[0] if len(found) == 1 else None


def _add_functions(line: Line, records: Records, functions: dict[int, IteratorKey]) -> None:
    if not functions:
        return
    work: dict[IteratorKey, list[int]] = defaultdict(list)
    for index in events_named(line, *EXECUTOR_WORK):
        owner = functions.get(int(line.stats(index).get("id", 0)))
        if owner is not None:
            work[owner].append(index)
    for key, indices in work.items():
        records[key].add_work(line, _spans(line, indices))


def _spans(line: Line, indices: list[int]) -> Intervals:
    return normalise(line.start_ns[indices], line.end_ns[indices])
