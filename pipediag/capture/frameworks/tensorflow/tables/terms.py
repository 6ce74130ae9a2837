"""Whether what a step computes of a whole table is a term of the loss or what a layer does with it.

A layer that uses all of its table, as tied output weights do, makes a gradient of the table's size
that no regulariser has to do with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.lookups import in_gradients
from pipediag.capture.frameworks.tensorflow.tables.unfolded import At, Frame, Unfolded

JOINS = frozenset({"AddN", "Cast", "ConcatV2", "Identity", "IdentityN", "Reshape"})
"""What makes one gradient of a table out of those of its lookups."""
MULTIPLIES = frozenset("BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum MatMul".split())
FROM_A_BATCH = frozenset({"IteratorGetNext", "Placeholder"})
_GATHERS = frozenset({"Gather", "GatherV2"})


def is_of_a_batch(step: Unfolded, frame: Frame, op: Any) -> bool:
    """Whether a gradient is of what a layer does with its batch, or is used in such a one."""
    return any(_takes_a_batch(step, frame, one) for one in _gradients_from(op))


def becomes_a_number(op: Any) -> bool:
    """Whether what it makes ends in one number, as a term of the loss does, or past the graph that
    it is in; and not in a product with what a layer is given, or in rows that are looked up."""
    seen: set[str] = set()
    waiting = [op]
    while waiting:
        at = waiting.pop()
        if at.name in seen or in_gradients(at):
            continue
        seen.add(at.name)
        if at.type in MULTIPLIES | _GATHERS:
            return False
        waiting.extend(
            user for one in at.outputs if one.shape.rank != 0 for user in one.consumers()
        )
    return True


def _gradients_from(op: Any) -> Iterator[Any]:
    """It and what it leads to in its graph, up to where gradients of several uses are joined."""
    seen: set[str] = set()
    waiting = [op]
    while waiting:
        at = waiting.pop()
        if at.name in seen or at.type in JOINS or not in_gradients(at):
            continue
        seen.add(at.name)
        yield at
        waiting.extend(user for one in at.outputs for user in one.consumers())


def _takes_a_batch(step: Unfolded, frame: Frame, op: Any) -> bool:
    """Whether a batch goes into it; numbers by themselves, as a loss that scales it, count not."""
    seen: set[tuple[int, str, int]] = set()
    waiting = [step.source(At(frame, one)) for one in op.inputs]
    while waiting:
        at = waiting.pop()
        if at.key in seen or at.tensor.shape.rank == 0 or at.tensor.dtype.name == "resource":
            continue
        seen.add(at.key)
        if at.op.type in FROM_A_BATCH and step.captured(at) is None:
            return True
        waiting.extend(step.source(one) for one in at.inputs())
    return False
