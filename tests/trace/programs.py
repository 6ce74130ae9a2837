"""Programs that XLA compiled, by hand, as a profile keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipediag.trace.events import PROGRAMS_PLANE
from pipediag.trace.xplane.protobuf import message_class
from tests.trace.builder import TraceBuilder


class ComputationBuilder:
    """Instructions, of which the last one is the result."""

    def __init__(self, message: Any, count: list[int]) -> None:
        self._message = message
        self._count = count

    def add(
        self,
        name: str,
        opcode: str,
        operation: str = "",
        operands: Sequence[int] = (),
        calls: ComputationBuilder | None = None,
    ) -> int:
        """An instruction; its operation is given as `scope/name:Type`. Returns its id."""
        self._count[0] += 1
        scope, _, kind = operation.rpartition(":")
        made = self._message.instructions.add(
            name=name.encode(), opcode=opcode.encode(), id=self._count[0], operand_ids=operands
        )
        made.metadata.op_name, made.metadata.op_type = scope.encode(), kind.encode()
        if calls is not None:
            made.called_computation_ids.append(calls.id)
        self._message.root_id = made.id
        return self._count[0]

    @property
    def id(self) -> int:
        found: int = self._message.id
        return found


class ProgramBuilder:
    """One program."""

    def __init__(self) -> None:
        self._message = message_class("HloProto")()
        self._count = [0]

    def computation(self) -> ComputationBuilder:
        """Another one; where instructions call it, it comes first."""
        module = self._message.hlo_module
        number = len(module.computations) + 1
        return ComputationBuilder(module.computations.add(id=number), self._count)

    def serialised(self) -> bytes:
        data: bytes = self._message.SerializeToString()
        return data


def add_programs(builder: TraceBuilder, programs: dict[int, bytes]) -> None:
    """Keep programs in a profile, by the numbers that events give."""
    plane = builder.plane(PROGRAMS_PLANE)
    for number, program in programs.items():
        plane.metadata_stat(f"cluster({number})", "Hlo Proto", program)
