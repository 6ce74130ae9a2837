"""A whole XPlane file as columns of events, parsed by the protobuf library.

Both ends of an event, in picoseconds since the start of the profile, are rounded down to
nanoseconds, which keeps nested events nested and disjoint events disjoint.

The message classes are made at run time in a descriptor pool of their own, so that TensorFlow need
not be installed and may be. Field numbers follow `tsl/profiler/protobuf/xplane.proto` and
`xla/service/hlo.proto`. Text fields are declared as bytes: a kernel name that is not valid UTF-8
then costs a replacement character instead of the whole profile.

A profile may keep the programs that XLA compiled. Each instruction, and each that was fused into
one, says for which operation of the graph it was made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from pipediag.trace.events import (
    PROGRAMS_PLANE,
    CompiledWork,
    Indices,
    Line,
    Plane,
    Program,
    Statistics,
    StatValue,
    Times,
    TraceEvents,
)
from pipediag.trace.files import MalformedError

LARGEST_NS = 1 << 62
"""1970 to 2116; a later time is damage, and adding an event's offset to it would overflow."""


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


PACKAGE = "pipediag.xplane"
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "double": _Field.TYPE_DOUBLE,
    "bytes": _Field.TYPE_BYTES,
}
# Exactly one is set, also when its value is 0.
_STAT_VALUES = {
    "double_value": (2, "double"),
    "uint64_value": (3, "uint64"),
    "int64_value": (4, "int64"),
    "str_value": (5, "bytes"),
    "bytes_value": (6, "bytes"),
    "ref_value": (7, "uint64"),
}
_MESSAGES = {
    "XSpace": {
        "planes": (1, "repeated XPlane"),
        "errors": (2, "repeated bytes"),
        "warnings": (3, "repeated bytes"),
    },
    "XPlane": {
        "name": (2, "bytes"),
        "lines": (3, "repeated XLine"),
        "event_metadata": (4, "repeated EventMetadataEntry"),
        "stat_metadata": (5, "repeated StatMetadataEntry"),
        "stats": (6, "repeated XStat"),
    },
    "EventMetadataEntry": {"key": (1, "int64"), "value": (2, "XEventMetadata")},
    "StatMetadataEntry": {"key": (1, "int64"), "value": (2, "XStatMetadata")},
    "XLine": {
        "id": (1, "int64"),
        "name": (2, "bytes"),
        "timestamp_ns": (3, "int64"),
        "events": (4, "repeated XEvent"),
        "display_name": (11, "bytes"),
    },
    "XEvent": {
        "metadata_id": (1, "int64"),
        "offset_ps": (2, "int64"),
        "duration_ps": (3, "int64"),
        "stats": (4, "repeated XStat"),
    },
    "XStat": {"metadata_id": (1, "int64"), **_STAT_VALUES},
    "XEventMetadata": {"name": (2, "bytes"), "stats": (5, "repeated XStat")},
    "XStatMetadata": {"name": (2, "bytes")},
    "HloProto": {"hlo_module": (1, "HloModuleProto")},
    "HloModuleProto": {"computations": (3, "repeated HloComputationProto")},
    "HloComputationProto": {
        "instructions": (2, "repeated HloInstructionProto"),
        "id": (5, "int64"),
        "root_id": (6, "int64"),
    },
    "HloInstructionProto": {
        "name": (1, "bytes"),
        "opcode": (2, "bytes"),
        "metadata": (7, "OpMetadata"),
        "id": (35, "int64"),
        "operand_ids": (36, "repeated int64"),
        "called_computation_ids": (38, "repeated int64"),
    },
    "OpMetadata": {"op_type": (1, "bytes"), "op_name": (2, "bytes")},
}


def message_class(name: str) -> Any:
    """Return the message class of that name: `XSpace` is a whole `.xplane.pb` file."""
    return _classes()[name]


@cache
def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="pipediag/xplane.proto", package=PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "XStat":
            message.oneof_decl.add(name="value")
        for field_name, (number, declared) in fields.items():
            kind = declared.removeprefix("repeated ")
            field = message.field.add(
                name=field_name,
                number=number,
                label=_Field.LABEL_OPTIONAL if kind == declared else _Field.LABEL_REPEATED,
                type=_SCALARS.get(kind, _Field.TYPE_MESSAGE),
            )
            if kind not in _SCALARS:
                field.type_name = f".{PACKAGE}.{kind}"
            if name == "XStat" and field_name in _STAT_VALUES:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in _MESSAGES
    }


def _parsed(name: str, data: bytes) -> Any:
    try:
        return message_class(name).FromString(data)
    except DecodeError as error:
        raise MalformedError(f"its {name} is damaged") from error


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def parse(data: bytes, path: Path) -> TraceEvents:
    """Read the profile in `data`.

    Raises MalformedError where the bytes are no XPlane profile, were cut short, or have impossible
    times.
    """
    space = _parsed("XSpace", data)
    return TraceEvents(
        path=path,
        format="xplane",
        planes=[_plane(plane) for plane in space.planes],
        warnings=[_text(words) for words in (*space.errors, *space.warnings)],
    )


class _Names:
    """Names of a plane's events by places from 0 on, and of its statistics by key."""

    def __init__(self, plane: Any) -> None:
        self._stats = {entry.key: _text(entry.value.name) for entry in plane.stat_metadata}
        self._metadata = {entry.key: entry.value for entry in plane.event_metadata}
        self.events = [_text(one.name) for one in self._metadata.values()]
        self._places = {key: place for place, key in enumerate(self._metadata)}
        self.described = list(self._metadata.values())
        """The metadata of each name."""
        self._shared: dict[int, dict[str, StatValue]] = {}

    def place(self, key: int) -> int:
        """Return the place of a key's name; a key without metadata gets the empty name."""
        place = self._places.setdefault(key, len(self.events))
        if place == len(self.events):
            self.events.append("")
        return place

    def keys(self, stat: str) -> frozenset[int]:
        """Return the keys under which a statistic of that name is written."""
        return frozenset(key for key, name in self._stats.items() if name == stat)

    def shared(self, place: int) -> dict[str, StatValue]:
        """Return the statistics that all events of that name share."""
        if place not in self._shared:
            known = place < len(self.described)
            self._shared[place] = self.decode(self.described[place].stats) if known else {}
        return self._shared[place]

    def decode(self, stats: Iterable[Any]) -> dict[str, StatValue]:
        """Return statistics by name; the last of a name counts."""
        return {self._stats.get(stat.metadata_id, ""): self.value(stat) for stat in stats}

    def value(self, stat: Any) -> StatValue:
        """Return the value of a statistic; a reference is the number of a text."""
        kind = stat.WhichOneof("value")
        if kind is None:
            return 0
        if kind == "ref_value":
            return self._stats.get(stat.ref_value, "")
        value: StatValue = getattr(stat, kind)
        return _text(stat.str_value) if kind == "str_value" else value


@dataclass(frozen=True)
class _EventStatistics(Statistics):
    """Statistics of a line's events, which stay in the messages until they are asked for."""

    events: Any = field(repr=False)
    """The messages, in the order of the file."""
    order: Indices = field(repr=False)
    """The place there of each event of the line."""
    name_ids: NDArray[np.int32] = field(repr=False)
    names: _Names = field(repr=False)

    def of(self, index: int) -> dict[str, StatValue]:
        own = self.names.decode(self.events[int(self.order[index])].stats)
        return self.names.shared(int(self.name_ids[index])) | own

    def values(self, name: str, indices: Indices) -> list[StatValue | None]:
        keys = self.names.keys(name)
        shared = {
            place: self.names.shared(place).get(name)
            for place in np.unique(self.name_ids[indices]).tolist()
        }
        found = [shared[place] for place in self.name_ids[indices].tolist()]
        for row, place in enumerate(self.order[indices].tolist() if keys else ()):
            for stat in self.events[place].stats:
                if stat.metadata_id in keys:
                    found[row] = self.names.value(stat)
        return found


def _plane(message: Any) -> Plane:
    names, name = _Names(message), _text(message.name)
    plane = Plane(
        name,
        names.events,
        names.decode(message.stats),
        programs=_programs(names) if name == PROGRAMS_PLANE else {},
    )
    plane.lines.extend(_line(line, plane, names) for line in message.lines)
    return plane


def _line(message: Any, plane: Plane, names: _Names) -> Line:
    if abs(message.timestamp_ns) >= LARGEST_NS:
        raise MalformedError(f"a line in it claims to begin at {message.timestamp_ns} ns")
    rows = [(one.metadata_id, one.offset_ps, one.duration_ps) for one in message.events]
    keys, offset_ps, length_ps = np.array(rows, np.int64).reshape(-1, 3).T
    length_ps = np.maximum(length_ps, 0)
    # Of those that start together, the longest comes first.
    order = np.lexsort((-length_ps, offset_ps))
    different, which = np.unique(keys[order], return_inverse=True)
    name_ids = np.array([names.place(key) for key in different.tolist()], np.int32)[which]
    start_ns, end_ns = _nanoseconds(message.timestamp_ns, offset_ps[order], length_ps[order])
    return Line(
        id=message.id,
        name=_text(message.display_name) or _text(message.name),
        start_ns=start_ns,
        end_ns=end_ns,
        name_ids=name_ids,
        statistics=_EventStatistics(message.events, order, name_ids, names),
        plane=plane,
    )


def _nanoseconds(line_ns: int, offset_ps: Times, length_ps: Times) -> tuple[Times, Times]:
    """Return starts and ends, given when the line begins."""
    start_ns = offset_ps // 1000
    # Two signed picoseconds may add up to more than 63 bits, but not to more than 64.
    past_ps = (offset_ps - start_ns * 1000).view(np.uint64) + length_ps.view(np.uint64)
    past_ns = (past_ps // np.uint64(1000)).view(np.int64)
    return start_ns + line_ns, start_ns + past_ns + line_ns


def _programs(names: _Names) -> Mapping[int, Program]:
    """Return the programs of the plane that has them, by the number that events give."""
    found = ((_ID.search(_text(one.name)), one) for one in names.described)
    return {int(number[1]): _Program(names, one) for number, one in found if number is not None}


@dataclass(frozen=True)
class _Program:
    """A program, which is decoded when it is asked for."""

    _names: _Names
    _message: Any
    _known: dict[str, CompiledWork | None] = field(default_factory=dict)

    def work(self, instruction: str) -> CompiledWork | None:
        if instruction not in self._known:
            self._known[instruction] = self._instructions.work(instruction)
        return self._known[instruction]

    @cached_property
    def _instructions(self) -> _Instructions:
        described = self._names.decode(self._message.stats).values()
        kept = next((value for value in described if isinstance(value, bytes)), b"")
        try:
            proto = _parsed("HloProto", kept)
        except MalformedError:
            # As in a profile that keeps no programs.
            return _Instructions([])
        return _Instructions(proto.hlo_module.computations)


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
            opcode, name = _text(one.opcode), _text(one.metadata.op_name)
            named = name and name != _ARGUMENTS
            operands = list(one.operand_ids)
            called = [part for part in one.called_computation_ids if part in within]
            called = called if opcode in _CALLS else []
            self._ids[_text(one.name)] = one.id
            self._by_id[one.id] = _Instruction(
                opcode=opcode,
                operation=f"{name}:{_text(one.metadata.op_type)}" if named else None,
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
