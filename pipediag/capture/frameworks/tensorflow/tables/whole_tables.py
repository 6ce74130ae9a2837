"""What a step does to whole tables: tensors of a table's shape, and what writes to variables.

Tensors of that shape which operations join belong together: the table's own value, its gradient
where it is spread over a tensor of the table's size, the optimizer's slots, and what is computed of
these. This tells two tables of one shape apart.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.lookups import GATHERS_ROWS, Lookup
from pipediag.capture.frameworks.tensorflow.tables.step_graph import (
    At,
    Frame,
    Key,
    StepGraph,
    calls_functions,
    in_gradients,
    of_all_devices,
)
from pipediag.session.recorded_loops import RecordedTableUse
from pipediag.vocabulary import SparseOrDense

_WRITES_ROWS = re.compile(r"ResourceScatter\w+|ResourceSparseApply\w+")
_WRITES_ALL = re.compile(r"Assign(Add|Sub)?VariableOp|ResourceApply\w+")
SPREADS = frozenset({"UnsortedSegmentSum", "TensorScatterUpdate", "TensorScatterAdd", "ScatterNd"})
"""Operations that make a tensor of the table's size out of the rows of a gradient."""
_COUNTS = frozenset({"Size", "Shape", "StridedSlice", "Cast", "Identity"})
_MAKES_NOTHING = frozenset({"ReadVariableOp", "Identity", "IdentityN", "Placeholder", "Const"})
"""Operations that hand on a tensor, or the variable's own memory."""

_AT_A_TIME = 2
"""Tensors of the table's size that an optimizer has in memory together, at most. Own measurement of
those of Keras: elementwise operations in a row write over their inputs."""

_Node = tuple[Any, ...]
_Made = tuple[Frame, Any, list[Any]]
"""An operation, where it is, and those of its outputs that are as large as the table."""


@dataclass
class Writes:
    """Handles of variables that a step writes to, by id."""

    rows: set[int] = field(default_factory=set)
    """Those of which it writes some rows."""
    whole: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, step: StepGraph) -> Writes:
        """Return the variables that the step writes."""
        found = cls()
        for frame, op in step.operations:
            if writes(op):
                kind = found.rows if _WRITES_ROWS.fullmatch(op.type) else found.whole
                kind.update(id(handle) for handle in handles(step, frame, op))
        return found

    def __contains__(self, handle: Any) -> bool:
        return id(handle) in self.rows or id(handle) in self.whole


def writes(op: Any) -> bool:
    """Return True if the operation writes to a variable."""
    return bool(_WRITES_ROWS.fullmatch(op.type) or _WRITES_ALL.fullmatch(op.type))


def handles(step: StepGraph, frame: Frame, op: Any) -> Iterator[Any]:
    """Yield the handles, outside of the graph, of an operation's variables."""
    for tensor in op.inputs:
        if tensor.dtype.name == "resource":
            handle = step.captured(At(frame, tensor))
            if handle is not None:
                yield handle


def _bytes_behind(handle: Any) -> int:
    """Return the bytes of a handle's variable; 0 where its shape is not known."""
    from tensorflow.python.framework import dtypes

    if (shape := _shape_behind(handle)) is None:
        return 0
    kind = dtypes.as_dtype(handle._handle_data.shape_and_type[0].dtype)
    return math.prod(max(length or 0, 0) for length in shape) * int(kind.size)


class WholeTables:
    """What a step makes of whole tables. Tables of one shape are read from the graph together."""

    def __init__(self, step: StepGraph) -> None:
        self._step = step
        self._exchanged = list(_exchanged(step))
        self._read: dict[tuple[int, ...], _OfShape] = {}

    def use_of(self, variable: Any, lookups: list[Lookup], writes: Writes) -> RecordedTableUse:
        """Describe what the step does with a table, and with what is computed together with it."""
        own, shape = variable.handle, tuple(variable.shape.as_list())
        found, group = self._group(own, shape)
        made = [
            (frame, op, outputs)
            for frame, op, outputs in found.made
            if found.groups.of(_node(self._step, At(frame, outputs[0]))) == group
        ]
        sizes = [
            math.prod(shape) * int(one.dtype.size) for _, _, outputs in made for one in outputs
        ]
        spread = any(op.type in SPREADS for _, op, _ in made)
        # Such a gradient is a regulariser's; rows that are written, or spread first, came as rows.
        dense = any(op.type not in SPREADS and in_gradients(op) for _, op, _ in made)
        came_as_rows = (spread or id(own) in writes.rows) and not dense
        gradient: SparseOrDense = "sparse" if came_as_rows else "dense"
        together = {node[1] for node in found.groups.members(group) if node[0] == "variable"}
        slots = self._slots(variable, together - {id(own)}, writes)
        reads = {one.read.key for one in lookups if one.read is not None and not one.compiled}
        return RecordedTableUse(
            variable=variable.name,
            device=variable.device,
            lookups=len(lookups),
            copied_on_lookup=any(lookup.read is not None for lookup in lookups),
            # XLA takes the rows of a read alone.
            copies=len(reads) if id(own) in writes.rows else 0,
            gradient=gradient if own in writes else None,
            gradient_spread=spread,
            writes_whole=any(id(one) in writes.whole for one in (own, *slots)),
            whole_table_operations=dict(sorted(Counter(op.type for _, op, _ in made).items())),
            temporary_bytes=sum(sizes),
            # A term of the loss over the whole table has its own; they may all be there at once.
            temporary_peak_bytes=sum(sizes)
            if gradient == "dense"
            else min(sum(sizes), _AT_A_TIME * max(sizes, default=0)),
            slots=len(slots),
            slot_bytes=sum(map(_bytes_behind, slots)),
        )

    def _slots(self, variable: Any, together: set[int], writes: Writes) -> list[Any]:
        """Return the handles of an optimizer's slots, on the table's own device if a strategy has
        copies on several."""
        copied = len(getattr(of_all_devices(variable), "values", None) or (variable,)) > 1
        return [
            handle
            for key, handle in self._step.handles().items()
            if key in together
            and handle in writes
            and (not copied or handle.device == variable.device)
        ]

    def touching(self, handle: Any, shape: tuple[int, ...]) -> list[tuple[Frame, Any]]:
        """Return the operations that read, make or write that table, or what is computed together
        with it."""
        found, group = self._group(handle, shape)
        return [(frame, op) for frame, op, node in found.touching if found.groups.of(node) == group]

    def _group(self, handle: Any, shape: tuple[int, ...]) -> tuple[_OfShape, _Node]:
        if shape not in self._read:
            found = self._read[shape] = _of_shape(self._step, shape)
            for before, after in self._exchanged:
                if _has_shape(self._step, after, shape):
                    found.groups.join([_node(self._step, before), _node(self._step, after)])
        found = self._read[shape]
        return found, found.groups.of(("variable", id(handle)))


class _Groups:
    """Sets that are merged (union-find)."""

    def __init__(self) -> None:
        self._above: dict[_Node, _Node] = {}

    def of(self, node: _Node) -> _Node:
        self._above.setdefault(node, node)
        while self._above[node] != node:
            self._above[node] = node = self._above[self._above[node]]
        return node

    def join(self, nodes: list[_Node]) -> None:
        for node in nodes[1:]:
            self._above[self.of(node)] = self.of(nodes[0])

    def members(self, group: _Node) -> Iterator[_Node]:
        return (node for node in list(self._above) if self.of(node) == group)


@dataclass
class _OfShape:
    """What a step does with tables of one shape."""

    groups: _Groups = field(default_factory=_Groups)
    """What belongs together."""
    made: list[_Made] = field(default_factory=list)
    """Operations that make tensors of that shape."""
    touching: list[tuple[Frame, Any, _Node]] = field(default_factory=list)
    """Operations that are given, or make, what belongs to a group, with a member of it."""


def _of_shape(step: StepGraph, shape: tuple[int, ...]) -> _OfShape:
    found = _OfShape()
    for one, other in step.same():
        if _has_shape(step, one, shape):
            found.groups.join([_node(step, one), _node(step, other)])
    for frame, op in step.operations:
        if calls_functions(op):
            continue
        if op.type == "IdentityN":
            for given, passed in zip(op.inputs, op.outputs, strict=True):
                found.groups.join([_node(step, At(frame, given)), _node(step, At(frame, passed))])
            continue
        outputs = [one for one in op.outputs if _has_shape(step, At(frame, one), shape)]
        inputs = [one for one in op.inputs if _has_shape(step, At(frame, one), shape)]
        nodes = list(_variables(step, frame, op, shape))
        nodes += [_node(step, At(frame, one)) for one in (*inputs, *outputs)]
        if nodes:
            found.touching.append((frame, op, nodes[0]))
        if _WRITES_ROWS.fullmatch(op.type):
            nodes += _read_for_rows(step, frame, op, shape)
        found.groups.join(nodes)
        if outputs and op.type not in _MAKES_NOTHING:
            found.made.append((frame, op, outputs))
    return found


def _read_for_rows(
    step: StepGraph, frame: Frame, op: Any, shape: tuple[int, ...]
) -> Iterator[_Node]:
    """Yield what an optimizer computes the rows from that it writes: tensors of that shape, and
    variables of it of which it gathers the same rows.

    The search ends at gradients: they are computed from the model, with its other tables.
    """
    rows = _node(step, At(frame, op.inputs[1]))
    seen: set[Key] = set()
    waiting = [step.source(At(frame, one)) for one in op.inputs[1:]]
    while waiting:
        at = waiting.pop()
        if at.key in seen or at.tensor.shape.rank == 0 or in_gradients(at.op):
            continue
        seen.add(at.key)
        if _has_shape(step, at, shape):
            yield _node(step, at)
            continue
        if at.op.type == GATHERS_ROWS and _node(step, at.inputs()[1]) == rows:
            yield from _variables(step, at.frame, at.op, shape)
        waiting.extend(step.source(one) for one in at.inputs())


def _node(step: StepGraph, at: At) -> _Node:
    return ("tensor", *step.source(at).key)


def _has_shape(step: StepGraph, at: At, shape: tuple[int, ...]) -> bool:
    """Return True for the table's shape, and for spread rows whose number is not known yet."""
    if at.tensor.shape.rank != len(shape):
        return False
    found = tuple(at.tensor.shape.as_list())
    if found == shape or found[0] is not None or at.op.type not in SPREADS:
        return found == shape
    if any(one not in (None, length) for one, length in zip(found, shape, strict=True)):
        return False
    return not _of_different_ids(step, at)


def _of_different_ids(step: StepGraph, at: At) -> bool:
    """Return True if it has a row for each different id of the batch: the sum of gradients."""
    at = step.source(at)
    if at.op.type != "UnsortedSegmentSum":
        return False
    at = step.source(at.inputs()[2])
    while at.op.type in _COUNTS:
        at = step.source(at.inputs()[0])
    return at.op.type in ("Unique", "UniqueV2")


def _variables(step: StepGraph, frame: Frame, op: Any, shape: tuple[int, ...]) -> Iterator[_Node]:
    """Yield its variables that have that shape, or one value for each row."""
    for handle in handles(step, frame, op):
        if _shape_behind(handle) in (shape, shape[:1], (*shape[:1], 1)):
            yield "variable", id(handle)


def _shape_behind(handle: Any) -> tuple[int | None, ...] | None:
    data = getattr(handle, "_handle_data", None)
    if data is None or len(data.shape_and_type) != 1 or data.shape_and_type[0].shape.unknown_rank:
        return None
    return tuple(one.size for one in data.shape_and_type[0].shape.dim)


_COLLECTIVE = re.compile(r"(CollectiveReduce|Nccl(All)?Reduce)\w*")
_ADDS_UP = "AddN"
"""The operation of a strategy that adds up on one device."""
_SAME = ("Cast", "Identity", "Reshape")
"""Operations on a gradient before it is packed with others into one, and afterwards."""
_REPLICA = re.compile(r"(?:^|/)replica_(\d+)/")


def _exchanged(step: StepGraph) -> Iterator[tuple[At, At]]:
    """Yield each gradient that replicas add up, as it was before and as it is afterwards."""
    for frame, op in step.operations:
        inputs = [At(frame, one) for one in op.inputs]
        if _COLLECTIVE.fullmatch(op.type):
            # Gradients of many variables are exchanged as one; their order stays.
            yield from zip(_packed(step, inputs[0]), _unpacked(frame, op), strict=False)
        elif op.type == _ADDS_UP and len({_replica(step.source(one).op) for one in inputs}) > 1:
            for one in inputs:
                yield one, At(frame, op.outputs[0])


def _packed(step: StepGraph, at: At) -> list[At]:
    at = _before(step, at)
    if at.op.type != "ConcatV2":
        return [at]
    return [_before(step, one) for one in at.inputs()[:-1]]


def _before(step: StepGraph, at: At) -> At:
    at = step.source(at)
    while at.op.type in _SAME:
        at = step.source(at.inputs()[0])
    return at


def _unpacked(frame: Frame, op: Any) -> list[At]:
    tensor = _afterwards(op.outputs[0])
    parts = [one for one in tensor.consumers() if one.type in ("Split", "SplitV")]
    made = parts[0].outputs if parts else [tensor]
    return [At(frame, _afterwards(one)) for one in made]


def _afterwards(tensor: Any) -> Any:
    while following := [one for one in tensor.consumers() if one.type in _SAME]:
        tensor = following[0].outputs[0]
    return tensor


def _replica(op: Any) -> str:
    """Return the number of the replica whose operation it is; names of the first have none."""
    found = _REPLICA.search(op.name)
    return found[1] if found else "0"
