"""Programs that XLA compiled, as a profile keeps them.

Each instruction, and each that was fused into one, says for which operation of the graph it was
made.
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


def programs_in(described: Iterable[Any]) -> Mapping[int, Program]:
    """Return the programs, each an XEventMetadata message, by the number that events give."""
    numbered = ((_ID.search(text(message.name)), message) for message in described)
    return {int(name[1]): _Program(message.stats) for name, message in numbered if name}


@dataclass(frozen=True)
class _Program:
    """A program, which is parsed when it is asked for."""

    _stats: Any
    _known: dict[str, CompiledWork | None] = field(default_factory=dict)

    def work(self, instruction: str) -> CompiledWork | None:
        if instruction not in self._known:
            self._known[instruction] = self._instructions.work(instruction)
        return self._known[instruction]

    @cached_property
    def _instructions(self) -> _Instructions:
        try:
            kept = (stat.bytes_value for stat in self._stats if stat.HasField("bytes_value"))
            proto = parsed("HloProto", next(kept, b""))
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
