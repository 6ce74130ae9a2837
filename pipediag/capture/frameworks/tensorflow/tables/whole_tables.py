"""Work of a step on whole tables: tensors of a table's shape, and what writes to variables.

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

from pipediag.capture.frameworks.tensorflow.tables.step_graph import (
    GATHERS_ROWS,
    At,
    Frame,
    Lookup,
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


@dataclass
class Writes:
    """Handles of variables that a step writes to, by id."""

    rows: set[int] = field(default_factory=set)
    """Handles of variables of which it writes some rows."""
    whole: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, step: StepGraph) -> Writes:
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
    """Tensors made of whole tables in a step. Tables of one shape are read together."""

    def __init__(self, step: StepGraph) -> None:
        self._step = step
        self._exchanged = list(_exchanged(step))
        self._of_shape: dict[tuple[int, ...], _OfShape] = {}

    def use_of(self, variable: Any, lookups: list[Lookup], writes: Writes) -> RecordedTableUse:
        """Describe what the step does with a table, and with what is computed together with it."""
        own, shape = variable.handle, tuple(variable.shape.as_list())
        found = self.of_shape(shape)
        made = [
            (op, outputs)
            for _, op, outputs in found.touching(own)
            if outputs and op.type not in _MAKES_NOTHING
        ]
        types = [op.type for op, _ in made]
        sizes = [math.prod(shape) * int(one.dtype.size) for _, outputs in made for one in outputs]
        spread = any(kind in SPREADS for kind in types)
        # Such a gradient is a regulariser's; rows that are written, or spread first, came as rows.
        dense = any(op.type not in SPREADS and in_gradients(op) for op, _ in made)
        came_as_rows = (spread or id(own) in writes.rows) and not dense
        gradient: SparseOrDense = "sparse" if came_as_rows else "dense"
        # A term of the loss has tensors of its own, which may all be there at once.
        most = sum(sizes) if dense else _AT_A_TIME * max(sizes, default=0)
        # A strategy has copies of a variable on several devices.
        copied = len(getattr(of_all_devices(variable), "values", None) or (variable,)) > 1
        together = found.variables_with(own) - {id(own)}
        slots = [
            handle
            for key, handle in self._step.handles().items()
            if key in together
            and handle in writes
            and (not copied or handle.device == variable.device)
        ]
        reads = {one.read.key for one in lookups if one.read is not None}
        return RecordedTableUse(
            variable=variable.name,
            lookups=len(lookups),
            # XLA takes the rows of a read alone.
            copies=0 if self._step.compiled or id(own) not in writes.rows else len(reads),
            gradient=gradient if own in writes else None,
            writes_whole=any(id(one) in writes.whole for one in (own, *slots)),
            whole_table_operations=dict(sorted(Counter(types).items())),
            temporary_bytes=min(sum(sizes), most),
            slot_bytes=sum(map(_bytes_behind, slots)),
        )

    def of_shape(self, shape: tuple[int, ...]) -> _OfShape:
        if shape not in self._of_shape:
            self._of_shape[shape] = _OfShape(self._step, shape, self._exchanged)
        return self._of_shape[shape]


class _OfShape:
    """Tensors and variables of one shape in a step, in sets that belong together (union-find)."""

    def __init__(
        self, step: StepGraph, shape: tuple[int, ...], exchanged: list[tuple[At, At]]
    ) -> None:
        self._step = step
        self._shape = shape
        self._above: dict[_Node, _Node] = {}
        self._touching: list[tuple[Frame, Any, list[Any], _Node]] = []
        """Operations that are given, or make, members of a set, with the tensors of the shape that
        they make, and with one of the members."""
        for frame, op in step.operations:
            if not calls_functions(op):
                self._add(frame, op)
        for before, after in exchanged:
            if self._fits(after):
                self._join([self._node(before), self._node(after)])

    def touching(self, handle: Any) -> list[tuple[Frame, Any, list[Any]]]:
        """Return the operations that are given, or make, something of the variable's set, with the
        tensors of its shape that they make."""
        group = self._group(("variable", id(handle)))
        return [found[:3] for found in self._touching if self._group(found[3]) == group]

    def variables_with(self, handle: Any) -> set[int]:
        """Return the ids of the handles in the variable's set."""
        group = self._group(("variable", id(handle)))
        nodes = [node for node in list(self._above) if self._group(node) == group]
        return {node[1] for node in nodes if node[0] == "variable"}

    def _add(self, frame: Frame, op: Any) -> None:
        if op.type == "IdentityN":
            for given, passed in zip(op.inputs, op.outputs, strict=True):
                self._join([self._node(At(frame, given)), self._node(At(frame, passed))])
            return
        outputs = [one for one in op.outputs if self._fits(At(frame, one))]
        inputs = [one for one in op.inputs if self._fits(At(frame, one))]
        nodes = list(self._variables(frame, op))
        nodes += [self._node(At(frame, one)) for one in (*inputs, *outputs)]
        if nodes:
            self._touching.append((frame, op, outputs, nodes[0]))
        if _WRITES_ROWS.fullmatch(op.type):
            nodes += self._read_for_rows(frame, op)
        self._join(nodes)

    def _read_for_rows(self, frame: Frame, op: Any) -> Iterator[_Node]:
        """Yield what an optimizer computes the rows from that it writes: tensors of the shape, and
        variables of it of which it gathers the same rows.

        The search ends at gradients: they are computed from the model, with its other tables.
        """

        def counts(at: At) -> bool:
            return at.tensor.shape.rank != 0 and not in_gradients(at.op)

        given = [At(frame, one) for one in op.inputs[1:]]
        rows = self._node(given[0])
        for at in self._step.upwards(given, lambda at: counts(at) and not self._fits(at)):
            if counts(at) and self._fits(at):
                yield self._node(at)
            elif counts(at) and at.op.type == GATHERS_ROWS and self._node(at.inputs()[1]) == rows:
                yield from self._variables(at.frame, at.op)

    def _variables(self, frame: Frame, op: Any) -> Iterator[_Node]:
        """Yield its variables that have the shape, or one value for each row."""
        first = self._shape[:1]
        for handle in handles(self._step, frame, op):
            if _shape_behind(handle) in (self._shape, first, (*first, 1)):
                yield "variable", id(handle)

    def _fits(self, at: At) -> bool:
        """Return True for the shape, and for spread rows whose number is not known yet."""
        if at.tensor.shape.rank != len(self._shape):
            return False
        found = tuple(at.tensor.shape.as_list())
        if found == self._shape or found[0] is not None or at.op.type not in SPREADS:
            return found == self._shape
        alike = zip(found, self._shape, strict=True)
        return all(one in (None, other) for one, other in alike) and not self._of_ids(at)

    def _of_ids(self, at: At) -> bool:
        """Return True if it has a row for each different id of the batch: the sum of gradients."""
        at = self._step.source(at)
        if at.op.type != "UnsortedSegmentSum":
            return False
        return self._step.behind(at.inputs()[2], _COUNTS).op.type in ("Unique", "UniqueV2")

    def _node(self, at: At) -> _Node:
        return ("tensor", *self._step.source(at).key)

    def _group(self, node: _Node) -> _Node:
        self._above.setdefault(node, node)
        while self._above[node] != node:
            self._above[node] = node = self._above[self._above[node]]
        return node

    def _join(self, nodes: list[_Node]) -> None:
        for node in nodes[1:]:
            self._above[self._group(node)] = self._group(nodes[0])


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
    packed = step.behind(at, _SAME)
    parts = packed.inputs()[:-1] if packed.op.type == "ConcatV2" else [packed]
    return [step.behind(one, _SAME) for one in parts]


def _unpacked(frame: Frame, op: Any) -> list[At]:
    def afterwards(tensor: Any) -> Any:
        while following := [one for one in tensor.consumers() if one.type in _SAME]:
            tensor = following[0].outputs[0]
        return tensor

    tensor = afterwards(op.outputs[0])
    parts = [one for one in tensor.consumers() if one.type in ("Split", "SplitV")]
    return [At(frame, afterwards(one)) for one in (parts[0].outputs if parts else [tensor])]


def _replica(op: Any) -> str:
    """Return the number of the replica whose operation it is; names of the first have none."""
    found = _REPLICA.search(op.name)
    return found[1] if found else "0"
