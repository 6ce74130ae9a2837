"""A whole XPlane file as columns of events, equal to what the protobuf library parses.

Events, which are most of it, are decoded into columns; everything else goes through that library.
Both ends of an event, in picoseconds since the start of the profile, are rounded down to
nanoseconds, which keeps nested events nested and disjoint events disjoint.

A profile may keep the programs that XLA compiled. Each instruction, and each that was fused into
one, says for which operation of the graph it was made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pipediag.trace.events import (
    LARGEST_NS,
    PROGRAMS_PLANE,
    CompiledWork,
    Line,
    Plane,
    Program,
    Times,
    TraceEvents,
)
from pipediag.trace.files import MalformedError
from pipediag.trace.xplane.columns import EVENT_TAG, EventColumns, event_columns, single_event
from pipediag.trace.xplane.protobuf import (
    LENGTH_DELIMITED,
    Field,
    Span,
    divided,
    field_at,
    parsed,
    text,
)
from pipediag.trace.xplane.statistics import EventNames, StatNames, WireStatistics

_WORTH_THREADS_BYTES = 4 << 20
_MOST_THREADS = 4
"""Number of threads: each needs memory for the columns of a line while it sorts them."""

# Fields of XSpace, of XPlane, and of XLine.
_PLANES, _LINES, _EVENT_METADATA, _EVENTS = 1, 3, 4, 4

_ID = re.compile(r"\((\d+)\)$")
"""Number of a program, behind its name, as events give it."""
_TUPLE = "tuple"
_CALLS = frozenset({"fusion", "call", "async-start"})
"""Instructions that only run those of another computation."""
_FREE = frozenset(
    {"parameter", "constant", _TUPLE, "get-tuple-element", "bitcast", "broadcast", "iota"}
)
"""Instructions that compute nothing of their own where they are fused."""
_REDUCES = frozenset({"reduce", "reduce-window"})
"""XLA makes several of one, and names only the last."""
_ARGUMENTS = "XLA_Args"
"""TensorFlow's name for all arguments of a program."""


def parse(data: memoryview, path: Path) -> TraceEvents:
    """Read the profile in `data`, which must not change while the result is used.

    Raises MalformedError where the bytes are no XPlane profile, were cut short, or have impossible
    times.
    """
    [planes], rest = divided(data, 0, len(data), _PLANES)
    space = parsed("XSpace", data, rest)
    return TraceEvents(
        path=path,
        format="xplane",
        planes=[_plane(path, data, part) for part in planes],
        warnings=[text(words) for words in (*space.errors, *space.warnings)],
    )


def _plane(path: Path, data: memoryview, part: Field) -> Plane:
    [lines, metadata], rest = divided(data, part.payload, part.end, _LINES, _EVENT_METADATA)
    message = parsed("XPlane", data, rest)
    stat_names = StatNames({entry.key: text(entry.value.name) for entry in message.stat_metadata})
    names = EventNames(data, metadata, stat_names)
    plane = Plane(text(message.name), names.names, stat_names.decode(message.stats))
    if plane.name == PROGRAMS_PLANE:
        for place, name in enumerate(names.names):
            if (found := _ID.search(name)) is not None:
                plane.programs[int(found[1])] = _program(names, place)
    worth_threads = sum(line.end - line.payload for line in lines) > _WORTH_THREADS_BYTES
    count = min(os.cpu_count() or 1, _MOST_THREADS) if worth_threads else 1
    # Most of the work is numpy's, which lets other threads run meanwhile.
    with ThreadPoolExecutor(count) as threads:
        plane.lines.extend(threads.map(lambda line: _line(path, data, line, plane, names), lines))
    return plane


def _line(path: Path, data: memoryview, part: Field, plane: Plane, names: EventNames) -> Line:
    message, columns = _events(data, part, names)
    columns = _in_order(columns)
    start_ns, end_ns = _nanoseconds(message.timestamp_ns, columns)
    return Line(
        id=message.id,
        name=text(message.display_name) or text(message.name),
        start_ns=start_ns,
        end_ns=end_ns,
        name_ids=columns.name_ids,
        statistics=WireStatistics(
            path=path,
            data=np.frombuffer(data, np.uint8),
            start=columns.details_start,
            end=columns.details_end,
            name_ids=columns.name_ids,
            event_names=names,
        ),
        plane=plane,
    )


def _events(data: memoryview, part: Field, names: EventNames) -> tuple[Any, EventColumns]:
    """Return the line without its events, and these."""
    at = part.payload
    rest: list[Span] = []
    found: list[EventColumns] = []
    while at < part.end:
        if data[at] == EVENT_TAG:
            for columns, end in event_columns(data, at, part.end, names.places):
                found.append(columns)
                at = end
            continue
        other = field_at(data, at, part.end)
        if (other.number, other.wire_type) == (_EVENTS, LENGTH_DELIMITED):
            found.append(single_event(data, other, names.places))
        else:
            rest.append((other.start, other.end))
        at = other.end
    return parsed("XLine", data, rest), EventColumns.joined(found)


def _in_order(columns: EventColumns) -> EventColumns:
    """Sort the events by start; of those that start together, the longest comes first."""
    offset_ps, length_ps = columns.offset_ps, columns.length_ps
    later = offset_ps[1:] > offset_ps[:-1]
    alike = (offset_ps[1:] == offset_ps[:-1]) & (length_ps[1:] <= length_ps[:-1])
    # Most profilers write them in that order.
    if (later | alike).all():
        return columns
    order = np.lexsort((-length_ps, offset_ps))
    return EventColumns._make(column[order] for column in columns)


def _nanoseconds(line_ns: int, columns: EventColumns) -> tuple[Times, Times]:
    """Return starts and ends, given when the line begins."""
    if abs(line_ns) >= LARGEST_NS:
        raise MalformedError(f"a line in it claims to begin at {line_ns} ns")
    start_ns = columns.offset_ps // 1000
    past = start_ns * -1000
    past += columns.offset_ps
    # Two signed picoseconds may add up to more than 63 bits, but not to more than 64.
    end_ns = past.view(np.uint64)
    end_ns += columns.length_ps.view(np.uint64)
    end_ns //= np.uint64(1000)
    start_ns += line_ns
    past += start_ns
    return start_ns, past


def _program(names: EventNames, place: int) -> Program:
    """Return a program, which stays in the file until it is asked for."""

    @cache
    def instructions() -> _Instructions:
        try:
            described = names.described(place).values()
            kept = next((value for value in described if isinstance(value, bytes)), b"")
            proto = parsed("HloProto", memoryview(kept), [(0, len(kept))])
        except MalformedError:
            # As in a profile that keeps no programs.
            return _Instructions([])
        return _Instructions(proto.hlo_module.computations)

    return cache(lambda instruction: instructions().work(instruction))


@dataclass(frozen=True, eq=False)
class _Instruction:
    opcode: str
    operation: str | None
    """Operation of the graph, as `scope/name:Type`; None for what XLA put in between."""
    operands: list[int]
    inner: list[int]
    """Instructions that it only runs."""
    outcome: list[int]
    """Instructions whose results it gives, where it has none of its own."""
    users: list[int] = field(default_factory=list)

    @property
    def computes(self) -> bool:
        return self.operation is not None and self.opcode not in _FREE


_Follow = Callable[[_Instruction], Iterable[int]]
"""Leads from an instruction to the ids of others."""


class _Instructions:
    """Instructions of one program; ids are unique in it."""

    def __init__(self, computations: Any) -> None:
        self._by_id: dict[int, _Instruction] = {}
        self._ids: dict[str, int] = {}
        within = {part.id: [one.id for one in part.instructions] for part in computations}
        roots = {part.id: part.root_id for part in computations}
        for one in (one for part in computations for one in part.instructions):
            opcode, name = text(one.opcode), text(one.metadata.op_name)
            named = name and name != _ARGUMENTS
            operands = list(one.operand_ids)
            called = [part for part in one.called_computation_ids if part in within]
            called = called if opcode in _CALLS else []
            self._ids[text(one.name)] = one.id
            self._by_id[one.id] = _Instruction(
                opcode=opcode,
                operation=f"{name}:{text(one.metadata.op_type)}" if named else None,
                operands=operands,
                inner=[number for part in called for number in within[part]],
                outcome=operands if opcode == _TUPLE else [roots[part] for part in called],
            )
        for number, user in self._by_id.items():
            for operand in user.operands if user.opcode != _TUPLE else ():
                if operand in self._by_id:
                    self._by_id[operand].users.append(number)

    def work(self, name: str) -> CompiledWork | None:
        """Return what an instruction computes; None where that is not known."""
        number = self._ids.get(name)
        if number is None:
            return None
        inner = list(self._reached(number, lambda one: one.inner))
        holds = {str(one.operation) for one in inner if one.computes and one.opcode not in _CALLS}
        ends_in = {
            one.operation
            for one in self._reached(number, lambda one: one.outcome)
            if one.operation is not None and one.opcode not in (*_CALLS, _TUPLE)
        }
        ends_in = ends_in or holds
        if not ends_in:
            # XLA put it in between, such as a copy: it belongs to what makes and what uses it. A
            # reduction works on what it is given, whatever uses the little that it makes.
            ends_in = self._next_named(number, lambda one: one.operands)
            if not (ends_in and any(one.opcode in _REDUCES for one in inner)):
                ends_in |= self._next_named(number, lambda one: one.users)
        return CompiledWork(frozenset(ends_in), frozenset(holds | ends_in)) if ends_in else None

    def _next_named(self, number: int, follow: _Follow) -> set[str]:
        reached = self._reached(number, lambda one: () if one.computes else follow(one))
        return {str(one.operation) for one in reached if one.computes}

    def _reached(self, number: int, follow: _Follow) -> Iterator[_Instruction]:
        """Yield it, and all that is found from it, each once."""
        seen: set[int] = set()
        waiting = [number]
        while waiting:
            at = waiting.pop()
            if at in self._by_id and at not in seen:
                seen.add(at)
                yield self._by_id[at]
                waiting.extend(follow(self._by_id[at]))
