"""What a step does to whole tables: tensors of a table's shape, and what writes to variables.

Tensors of that shape which operations join belong together: the table's own value, its gradient
where it is spread over a tensor of the table's size, the optimizer's slots, and what is computed of
these. So two tables of one shape are told apart.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.exchange import exchanged
from pipediag.capture.frameworks.tensorflow.tables.liveness import Liveness, Made
from pipediag.capture.frameworks.tensorflow.tables.lookups import GATHERS_ROWS, in_gradients
from pipediag.capture.frameworks.tensorflow.tables.unfolded import (
    At,
    Frame,
    Unfolded,
    calls_functions,
)

_WRITES_ROWS = re.compile(r"ResourceScatter\w+|ResourceSparseApply\w+")
_WRITES_ALL = re.compile(r"Assign(Add|Sub)?VariableOp|ResourceApply\w+")
SPREADS = frozenset({"UnsortedSegmentSum", "TensorScatterUpdate", "TensorScatterAdd", "ScatterNd"})
"""What makes a tensor of the table's size out of the rows of a gradient."""
_COUNTS = frozenset({"Size", "Shape", "StridedSlice", "Cast", "Identity"})
_MAKES_NOTHING = frozenset({"ReadVariableOp", "Identity", "IdentityN", "Placeholder", "Const"})
"""What hands on a tensor, or the variable's own memory."""

_Key = tuple[Any, ...]


@dataclass
class WholeTable:
    """What was seen of one table in one step."""

    operations: Counter[str] = field(default_factory=Counter)
    """Operations that make a tensor of the table's shape, by type."""
    temporary_bytes: int = 0
    """Of all those tensors, as if none shared its memory with another."""
    temporary_peak_bytes: int = 0
    """Of those that are in memory at one time."""
    variables: set[int] = field(default_factory=set)
    """Ids of the handles of variables of that shape which it is computed with."""
    spread: bool = False
    """Whether rows of a gradient were spread over a tensor of the table's size."""
    exchanged: bool = False
    """Whether a tensor of the table's size is added up over replicas."""
    dense_gradient: bool = False
    """Whether a gradient of the table's size was computed, as a regulariser's is."""


@dataclass
class Writes:
    """Handles of variables that a step writes to, by id."""

    rows: set[int] = field(default_factory=set)
    """Some of their rows."""
    whole: set[int] = field(default_factory=set)

    def __contains__(self, handle: Any) -> bool:
        return id(handle) in self.rows or id(handle) in self.whole


def writes(op: Any) -> bool:
    """Whether it writes to a variable."""
    return bool(_WRITES_ROWS.fullmatch(op.type) or _WRITES_ALL.fullmatch(op.type))


def writes_of(step: Unfolded) -> Writes:
    """Which variables it writes, and how."""
    found = Writes()
    for frame, op in step.operations:
        written = _written(op, found)
        if written is not None:
            written.update(id(handle) for handle in handles(step, frame, op))
    return found


class WholeTables:
    """What a step makes of whole tables. Tables of one shape are read from the graph together."""

    def __init__(self, step: Unfolded) -> None:
        self._step = step
        self._exchanged = list(exchanged(step))
        self._read: dict[tuple[int, ...], _OfShape] = {}

    def of(self, handle: Any, shape: tuple[int, ...]) -> WholeTable:
        """What is made of that table, and of what is computed together with it."""
        found = self._of_shape(shape)
        group = found.groups.of(("variable", id(handle)))
        table = WholeTable()
        made = [
            (frame, op, outputs)
            for frame, op, outputs in found.made
            if found.groups.of(_key(self._step, At(frame, outputs[0]))) == group
        ]
        sizes = {
            At(frame, one).key: _bytes(one, shape) for frame, _, outputs in made for one in outputs
        }
        table.temporary_bytes = sum(sizes.values())
        table.temporary_peak_bytes = Liveness(self._step).peak_bytes(made, sizes) if made else 0
        for _, op, _ in made:
            table.operations[op.type] += 1
            if op.type in SPREADS:
                table.spread = True
            elif in_gradients(op):
                table.dense_gradient = True
        table.exchanged = any(
            found.groups.of(_key(self._step, at)) == group
            for _, at in self._exchanged
            if _has_shape(self._step, at, shape)
        )
        members = found.groups.members(group)
        table.variables = {key[1] for key in members if key[0] == "variable"}
        return table

    def touching(self, handle: Any, shape: tuple[int, ...]) -> list[tuple[Frame, Any]]:
        """Operations that read, make or write that table, or what is computed together with it."""
        found = self._of_shape(shape)
        group = found.groups.of(("variable", id(handle)))
        return [(frame, op) for frame, op, key in found.touching if found.groups.of(key) == group]

    def _of_shape(self, shape: tuple[int, ...]) -> _OfShape:
        if shape not in self._read:
            found = self._read[shape] = _of_shape(self._step, shape)
            for before, after in self._exchanged:
                if _has_shape(self._step, after, shape):
                    found.groups.join([_key(self._step, before), _key(self._step, after)])
        return self._read[shape]


class _Groups:
    """Sets that grow together: a forest in which each set is a tree."""

    def __init__(self) -> None:
        self._above: dict[_Key, _Key] = {}

    def of(self, key: _Key) -> _Key:
        self._above.setdefault(key, key)
        while self._above[key] != key:
            self._above[key] = key = self._above[self._above[key]]
        return key

    def join(self, keys: list[_Key]) -> None:
        for key in keys[1:]:
            self._above[self.of(key)] = self.of(keys[0])

    def members(self, group: _Key) -> Iterator[_Key]:
        return (key for key in list(self._above) if self.of(key) == group)


@dataclass
class _OfShape:
    """What a step does with tables of one shape."""

    groups: _Groups = field(default_factory=_Groups)
    """What belongs together."""
    made: list[Made] = field(default_factory=list)
    """Operations that make tensors of that shape."""
    touching: list[tuple[Frame, Any, _Key]] = field(default_factory=list)
    """Operations that are given, or make, what belongs to a group, with a key of it."""


def _of_shape(step: Unfolded, shape: tuple[int, ...]) -> _OfShape:
    found = _OfShape()
    for one, other in step.same():
        if _has_shape(step, one, shape):
            found.groups.join([_key(step, one), _key(step, other)])
    for frame, op in step.operations:
        if calls_functions(op):
            continue
        if op.type == "IdentityN":
            for given, passed in zip(op.inputs, op.outputs, strict=True):
                found.groups.join([_key(step, At(frame, given)), _key(step, At(frame, passed))])
            continue
        outputs = [one for one in op.outputs if _has_shape(step, At(frame, one), shape)]
        inputs = [one for one in op.inputs if _has_shape(step, At(frame, one), shape)]
        keys = list(_variables(step, frame, op, shape))
        keys += [_key(step, At(frame, one)) for one in (*inputs, *outputs)]
        if keys:
            found.touching.append((frame, op, keys[0]))
        if _WRITES_ROWS.fullmatch(op.type):
            keys += _read_for_rows(step, frame, op, shape)
        found.groups.join(keys)
        if outputs and op.type not in _MAKES_NOTHING:
            found.made.append((frame, op, outputs))
    return found


def _read_for_rows(step: Unfolded, frame: Frame, op: Any, shape: tuple[int, ...]) -> Iterator[_Key]:
    """What an optimizer computes the rows from that it writes: tensors of that shape, and variables
    of it of which it gathers the same rows.

    Gradients are where it begins: what they are computed from is the model, with its other tables.
    """
    rows = _rows_of(step, frame, op)
    seen: set[_Key] = set()
    waiting = [step.source(At(frame, one)) for one in op.inputs[1:]]
    while waiting:
        at = waiting.pop()
        if at.key in seen or at.tensor.shape.rank == 0 or in_gradients(at.op):
            continue
        seen.add(at.key)
        if _has_shape(step, at, shape):
            yield _key(step, at)
            continue
        if at.op.type == GATHERS_ROWS and _rows_of(step, at.frame, at.op) == rows:
            yield from _variables(step, at.frame, at.op, shape)
        waiting.extend(step.source(one) for one in at.inputs())


def _rows_of(step: Unfolded, frame: Frame, op: Any) -> _Key:
    """Which rows of a variable it gathers or writes, as a key of the tensor that says so."""
    return _key(step, At(frame, op.inputs[1]))


def _key(step: Unfolded, at: At) -> _Key:
    return ("tensor", *step.source(at).key)


def _has_shape(step: Unfolded, at: At, shape: tuple[int, ...]) -> bool:
    """Whether it has the table's shape; where its rows are not known yet, if rows are spread."""
    if at.tensor.shape.rank != len(shape):
        return False
    found = tuple(at.tensor.shape.as_list())
    if found == shape or found[0] is not None or at.op.type not in SPREADS:
        return found == shape
    if any(one not in (None, length) for one, length in zip(found, shape, strict=True)):
        return False
    return not _of_different_ids(step, at)


def _of_different_ids(step: Unfolded, at: At) -> bool:
    """Whether it has a row for each different id of the batch: gradients of one row are summed."""
    at = step.source(at)
    if at.op.type != "UnsortedSegmentSum":
        return False
    at = step.source(at.inputs()[2])
    while at.op.type in _COUNTS:
        at = step.source(at.inputs()[0])
    return at.op.type in ("Unique", "UniqueV2")


def handles(step: Unfolded, frame: Frame, op: Any) -> Iterator[Any]:
    """Handles, outside of the graph, of the variables that an operation is given."""
    for tensor in op.inputs:
        if tensor.dtype.name == "resource":
            handle = step.captured(At(frame, tensor))
            if handle is not None:
                yield handle


def _variables(step: Unfolded, frame: Frame, op: Any, shape: tuple[int, ...]) -> Iterator[_Key]:
    """Those it is given that have that shape, or one value for each row."""
    for handle in handles(step, frame, op):
        if _shape_behind(handle) in (shape, shape[:1], (*shape[:1], 1)):
            yield "variable", id(handle)


def _shape_behind(handle: Any) -> tuple[int | None, ...] | None:
    data = getattr(handle, "_handle_data", None)
    if data is None or len(data.shape_and_type) != 1 or data.shape_and_type[0].shape.unknown_rank:
        return None
    return tuple(one.size for one in data.shape_and_type[0].shape.dim)


def bytes_behind(handle: Any) -> int:
    """Of the variable that a handle is of; 0 where its shape is not known."""
    from tensorflow.python.framework import dtypes

    shape = _shape_behind(handle)
    if shape is None:
        return 0
    kind = dtypes.as_dtype(handle._handle_data.shape_and_type[0].dtype)
    return math.prod(max(length or 0, 0) for length in shape) * int(kind.size)


def _written(op: Any, found: Writes) -> set[int] | None:
    if _WRITES_ROWS.fullmatch(op.type):
        return found.rows
    return found.whole if _WRITES_ALL.fullmatch(op.type) else None


def _bytes(tensor: Any, shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count * int(tensor.dtype.size)
