"""The programs that XLA compiled, as the profile keeps them: what their instructions were made of.

XLA fuses operations of a graph into instructions with names of their own. Each instruction, and
each that was fused into one, says which operation it was made for, by the name that the graph has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pipediag.trace.events import CompiledWork, Program
from pipediag.trace.files import MalformedError
from pipediag.trace.xplane.protobuf import parsed, text
from pipediag.trace.xplane.statistics import EventNames

_ID = re.compile(r"\((\d+)\)$")
"""Behind a program's name, as events give it."""
_TUPLE = "tuple"
_CALLS = frozenset({"fusion", "call", "async-start"})
"""What only runs the instructions of another computation."""
_FREE = frozenset(
    {"parameter", "constant", _TUPLE, "get-tuple-element", "bitcast", "broadcast", "iota"}
)
"""What computes nothing of its own where it is fused."""
_REDUCES = frozenset({"reduce", "reduce-window"})
"""XLA makes several of one, and names none but the last."""
_ARGUMENTS = "XLA_Args"
"""What TensorFlow names all that a program is given."""
_Follow = Callable[[int], Iterable[int]]
"""From the id of an instruction to those of others."""


def programs_in(names: EventNames) -> Mapping[int, Program]:
    """Those of the plane that describes them, by the number that events give."""
    found: dict[int, Program] = {}
    for place, name in enumerate(names.names):
        numbered = _ID.search(name)
        if numbered is not None:
            found[int(numbered[1])] = _Program(names, place)
    return found


@dataclass(frozen=True)
class _Program:
    """One, which stays in the file until it is asked for."""

    _names: EventNames
    _place: int
    _known: dict[str, CompiledWork | None] = field(default_factory=dict)

    def work(self, instruction: str) -> CompiledWork | None:
        if instruction not in self._known:
            self._known[instruction] = self._instructions.work(instruction)
        return self._known[instruction]

    @cached_property
    def _instructions(self) -> _Instructions:
        try:
            said = self._names.described(self._place).values()
            kept = next((value for value in said if isinstance(value, bytes)), b"")
            proto = parsed("HloProto", memoryview(kept), [(0, len(kept))])
        except MalformedError:
            # What it computed is then told as little as in a profile that keeps no programs.
            return _Instructions([])
        return _Instructions(proto.hlo_module.computations)


@dataclass(frozen=True, eq=False)
class _Instruction:
    opcode: str
    operation: str | None
    """Of the graph, as `scope/name:Type`; None for what XLA put in between."""
    operands: tuple[int, ...]
    called: tuple[int, ...]


class _Instructions:
    """All of one program; ids are unique in it."""

    def __init__(self, computations: Any) -> None:
        self._by_id: dict[int, _Instruction] = {}
        self._ids: dict[str, int] = {}
        self._within: dict[int, list[int]] = {}
        self._roots: dict[int, int] = {}
        for computation in computations:
            self._roots[computation.id] = computation.root_id
            self._within[computation.id] = [one.id for one in computation.instructions]
            for one in computation.instructions:
                self._ids[text(one.name)] = one.id
                self._by_id[one.id] = _instruction(one)
        self._users: dict[int, list[int]] = {}
        for number, one in self._by_id.items():
            for operand in one.operands:
                self._users.setdefault(operand, []).append(number)

    def work(self, name: str) -> CompiledWork | None:
        """What an instruction computes; None where it is not known, or nothing tells."""
        number = self._ids.get(name)
        if number is None:
            return None
        holds = frozenset(self._held(number))
        ends_in = frozenset(self._results(number)) or holds or frozenset(self._around(number))
        return CompiledWork(ends_in, holds | ends_in) if ends_in else None

    def _held(self, number: int) -> Iterator[str]:
        """All operations that have a share in what it computes."""
        for one in self._reached(number, self._inner):
            if one.opcode not in _CALLS and _computes(one):
                yield str(one.operation)

    def _results(self, number: int) -> Iterator[str]:
        """The operations whose results it gives."""
        for one in self._reached(number, self._outcome):
            if one.operation is not None and one.opcode not in (*_CALLS, _TUPLE):
                yield one.operation

    def _around(self, number: int) -> Iterator[str]:
        """What makes, and what uses, something that XLA put in between, as a copy.

        A reduction has its work with what it is given, whatever uses the little that it makes.
        """
        made_by = list(self._named_next(number, lambda at: self._by_id[at].operands))
        yield from made_by
        reduces = any(one.opcode in _REDUCES for one in self._reached(number, self._inner))
        if not (made_by and reduces):
            yield from self._named_next(number, self._uses)

    def _named_next(self, number: int, follow: _Follow) -> Iterator[str]:
        for one in self._reached(number, self._until_named(follow)):
            if _computes(one):
                yield str(one.operation)

    def _inner(self, number: int) -> Iterator[int]:
        one = self._by_id[number]
        for computation in one.called if one.opcode in _CALLS else ():
            yield from self._within.get(computation, ())

    def _outcome(self, number: int) -> Iterator[int]:
        one = self._by_id[number]
        if one.opcode == _TUPLE:
            yield from one.operands
        elif one.opcode in _CALLS:
            yield from (self._roots[called] for called in one.called if called in self._roots)

    def _uses(self, number: int) -> Iterator[int]:
        users = self._users.get(number, ())
        return (user for user in users if self._by_id[user].opcode != _TUPLE)

    def _until_named(self, follow: _Follow) -> _Follow:
        return lambda at: () if _computes(self._by_id[at]) else follow(at)

    def _reached(self, number: int, follow: _Follow) -> Iterator[_Instruction]:
        """It, and all that is found from it, each once."""
        seen: set[int] = set()
        waiting = [number]
        while waiting:
            at = waiting.pop()
            if at in self._by_id and at not in seen:
                seen.add(at)
                yield self._by_id[at]
                waiting.extend(follow(at))


def _computes(one: _Instruction) -> bool:
    return one.operation is not None and one.opcode not in _FREE


def _instruction(one: Any) -> _Instruction:
    opcode = text(one.opcode)
    name = text(one.metadata.op_name)
    named = name and name != _ARGUMENTS
    return _Instruction(
        opcode=opcode,
        operation=f"{name}:{text(one.metadata.op_type)}" if named else None,
        operands=tuple(one.operand_ids),
        called=tuple(one.called_computation_ids),
    )
