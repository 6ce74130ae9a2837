"""Which operations of a step are which part of what an embedding table costs.

They are told by what they do to the table, not by their scopes: what touches a tensor of its size,
or writes its rows, and what leads from a gradient to these writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pipediag.capture.frameworks.tensorflow.tables.lookups import gathers_rows, in_gradients
from pipediag.capture.frameworks.tensorflow.tables.terms import (
    FROM_A_BATCH,
    JOINS,
    MULTIPLIES,
    becomes_a_number,
    is_of_a_batch,
)
from pipediag.capture.frameworks.tensorflow.tables.unfolded import At, Frame, Unfolded
from pipediag.capture.frameworks.tensorflow.tables.work import SPREADS, WholeTables, handles, writes
from pipediag.vocabulary import TablePart

Label = TypeVar("Label")
Place = tuple[int, str]
"""Of an operation: the number of its frame, and its name there."""

_READ = "ReadVariableOp"
_ASSIGN = "AssignVariableOp"
_SUMS_ROWS = SPREADS | {"Unique", "UniqueV2"}
_NO_PASS = MULTIPLIES | set("Rank Shape ShapeN Size Transpose VariableShape".split())
"""What a layer does that multiplies by the whole table, and what looks at shapes alone."""


class TableParts:
    """Of one table in one step."""

    def __init__(
        self, step: Unfolded, whole: WholeTables, handle: Any, shape: tuple[int, ...]
    ) -> None:
        self._step = step
        self._handle = handle
        self._shape = shape
        self._touching = whole.touching(handle, shape)
        self._touched = {place_of(frame, op) for frame, op in self._touching}

    def by_place(self) -> dict[Place, TablePart]:
        """The part of each operation that has one."""
        found: dict[Place, TablePart] = {}
        for frame, op in self._touching:
            if writes(op):
                found.update(self._write(frame, op))
        for frame, op in self._touching:
            part = self._of_touching(frame, op)
            # A read copies, whatever the copy is for.
            if part is not None and (op.type == _READ or place_of(frame, op) not in found):
                found[place_of(frame, op)] = part
        return found

    def _write(self, frame: Frame, op: Any) -> Iterator[tuple[Place, TablePart]]:
        """One write to the table or a slot of it, and what leads to it."""
        way = _Way(self._step, frame, op)
        part: TablePart = "regularizer" if self._is_constraint(frame, op, way) else "update"
        yield place_of(frame, op), part
        # What is written without a gradient may be computed by the whole model.
        known = way.has_gradient or part == "regularizer"
        for at in way.computing:
            if known or place_of(at.frame, at.op) in self._touched:
                yield place_of(at.frame, at.op), "gradient" if at.op.type in _SUMS_ROWS else part
        for at in way.joining:
            yield place_of(at.frame, at.op), "gradient"

    def _is_constraint(self, frame: Frame, op: Any, way: _Way) -> bool:
        """Whether the table's own value is put in its place, changed by no gradient."""
        if op.type != _ASSIGN or way.has_gradient:
            return False
        read = [(at.frame, at.op) for at in way.computing if at.op.type == _READ]
        of = [one for each in ((frame, op), *read) for one in handles(self._step, *each)]
        return all(one is self._handle for one in of)

    def _of_touching(self, frame: Frame, op: Any) -> TablePart | None:
        """What it is where it leads to no write."""
        if op.type == _READ:
            return "copy"
        if in_gradients(op):
            return self._of_gradient(frame, op)
        if gathers_rows(self._step, frame, op):
            return "lookup"
        if op.type in _NO_PASS or not self._any_whole(op.inputs):
            return None
        # Norms of gradients are the optimizer's, those of the table a regulariser's.
        if _Way(self._step, frame, op, first=0).has_gradient:
            return "update"
        return "copy" if op.type == "Cast" else _term(op)

    def _of_gradient(self, frame: Frame, op: Any) -> TablePart | None:
        if op.type in _SUMS_ROWS or op.type in JOINS:
            return "gradient"
        if op.type in _NO_PASS or not self._any_whole(op.outputs) or self._any_each(op.inputs):
            return None
        # Any use of all of the table by a layer makes such a gradient, too.
        return "gradient" if is_of_a_batch(self._step, frame, op) else "regularizer"

    def _any_each(self, tensors: Iterable[Any]) -> bool:
        """Whether one of these has the table's shape for each example: what sums them up belongs to
        the product that they come from, as that of tied output weights."""
        longer = (one.shape for one in tensors if (one.shape.rank or 0) > len(self._shape))
        return any(tuple(shape.as_list())[-len(self._shape) :] == self._shape for shape in longer)

    def _any_whole(self, tensors: Iterable[Any]) -> bool:
        """Whether one of these has the table's shape."""
        shapes = (one.shape for one in tensors if one.shape.rank == len(self._shape))
        return any(tuple(shape.as_list()) == self._shape for shape in shapes)


def _term(op: Any) -> TablePart | None:
    return "regularizer" if becomes_a_number(op) else None


class _Way:
    """What an operation is computed from, back to the gradients and to what joins them."""

    def __init__(self, step: Unfolded, frame: Frame, op: Any, first: int = 1) -> None:
        self.computing: list[At] = []
        """What optimizers do with a gradient."""
        self.joining: list[At] = []
        """What makes one gradient of a table out of those of its lookups."""
        self.has_gradient = False
        seen: set[tuple[int, str, int]] = set()
        waiting = [(step.source(At(frame, one)), False) for one in op.inputs[first:]]
        while waiting:
            at, beyond = waiting.pop()
            if at.key in seen or at.tensor.shape.rank == 0 or at.op.type in FROM_A_BATCH:
                continue
            seen.add(at.key)
            if in_gradients(at.op):
                beyond = self.has_gradient = True
                if at.op.type not in _SUMS_ROWS and at.op.type not in JOINS:
                    continue
                self.joining.append(at)
            elif beyond:
                continue
            else:
                self.computing.append(at)
            waiting.extend((step.source(one), beyond) for one in at.inputs())


def event_names(step: Unfolded, labels: Mapping[Place, Label | None]) -> dict[str, Label | None]:
    """The labels by the names that a profile may have for operations; None for all others.

    TensorFlow puts the graphs of functions into their callers, and an operation's name behind that
    of the call; what it does not put there keeps its own. A name of several operations has a label
    where all of these have it.
    """
    found: dict[str, Label | None] = {}
    for frame, op in step.operations:
        label = labels.get(place_of(frame, op))
        for name in _names(frame, op):
            found[name] = label if found.setdefault(name, label) == label else None
    return found


def once(
    tables: Iterable[tuple[int, dict[Place, TablePart]]],
) -> dict[Place, tuple[int, TablePart] | None]:
    """What is of one table alone, as pairs of that and the part; None for what is of several."""
    found: dict[Place, tuple[int, TablePart] | None] = {}
    for table, by_place in tables:
        for place, part in by_place.items():
            known = found.setdefault(place, (table, part))
            if known is None or known[0] != table:
                found[place] = None
    return found


def _names(frame: Frame, op: Any) -> Iterator[str]:
    name, around = op.name, frame
    yield name
    while around.caller is not None:
        name, around = f"{around.call.name}/{name}", around.caller
        yield name


def place_of(frame: Frame, op: Any) -> Place:
    """Which operation of the step it is."""
    return frame.index, op.name
