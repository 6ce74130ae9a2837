"""Operations of a step by the part of an embedding table's cost that they are, and those of a
number for each of many classes.

What they do to a table decides, not their scopes: what touches a tensor of its size, or writes its
rows, and what leads from a gradient to these writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pipediag.capture.frameworks.tensorflow.tables.lookups import gathers_rows
from pipediag.capture.frameworks.tensorflow.tables.step_graph import (
    At,
    Frame,
    Key,
    StepGraph,
    calls_functions,
    in_gradients,
    of_all_devices,
)
from pipediag.capture.frameworks.tensorflow.tables.whole_tables import (
    SPREADS,
    WholeTables,
    handles,
    writes,
)
from pipediag.session.recorded_loops import Softmax
from pipediag.vocabulary import SparseOrDense, TablePart

Label = TypeVar("Label")
Place = tuple[int, str]
"""Identity of an operation: the number of its frame, and its name there."""

_READ = "ReadVariableOp"
_ASSIGN = "AssignVariableOp"
_SUMS_ROWS = SPREADS | {"Unique", "UniqueV2"}
_JOINS = frozenset({"AddN", "Cast", "ConcatV2", "Identity", "IdentityN", "Reshape"})
"""Operations that make one gradient of a table out of those of its lookups."""
_MULTIPLIES = frozenset("BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum MatMul".split())
_FROM_A_BATCH = frozenset({"IteratorGetNext", "Placeholder"})
_GATHERS = frozenset({"Gather", "GatherV2"})
_NO_PASS = _MULTIPLIES | set("Rank Shape ShapeN Size Transpose VariableShape".split())
"""Operations of a layer that multiplies by the whole table, and those that look at shapes alone."""


class TableParts:
    """Finds the parts of one table in one step."""

    def __init__(
        self, step: StepGraph, whole: WholeTables, handle: Any, shape: tuple[int, ...]
    ) -> None:
        self._step = step
        self._handle = handle
        self._shape = shape
        self._touching = whole.touching(handle, shape)
        self._touched = {place_of(frame, op) for frame, op in self._touching}

    def by_place(self) -> dict[Place, TablePart]:
        """Return the part of each operation that has one."""
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
        """Yield one write to the table or a slot of it, and what leads to it."""
        origin = _Origin(self._step, frame, op)
        part: TablePart = "regularizer" if self._is_constraint(frame, op, origin) else "update"
        yield place_of(frame, op), part
        # What is written without a gradient may be computed by the whole model.
        known = origin.has_gradient or part == "regularizer"
        for at in origin.computing:
            if known or place_of(at.frame, at.op) in self._touched:
                yield place_of(at.frame, at.op), "gradient" if at.op.type in _SUMS_ROWS else part
        for at in origin.joining:
            yield place_of(at.frame, at.op), "gradient"

    def _is_constraint(self, frame: Frame, op: Any, origin: _Origin) -> bool:
        """Return True if the table's own value is written back, changed by no gradient."""
        if op.type != _ASSIGN or origin.has_gradient:
            return False
        read = [(at.frame, at.op) for at in origin.computing if at.op.type == _READ]
        of = [one for each in ((frame, op), *read) for one in handles(self._step, *each)]
        return all(one is self._handle for one in of)

    def _of_touching(self, frame: Frame, op: Any) -> TablePart | None:
        """Return the part of an operation that leads to no write."""
        if op.type == _READ:
            return "copy"
        if in_gradients(op):
            return self._of_gradient(frame, op)
        if gathers_rows(self._step, frame, op):
            return "lookup"
        if op.type in _NO_PASS or not self._any_whole(op.inputs):
            return None
        # Norms of gradients are the optimizer's, those of the table a regulariser's.
        if _Origin(self._step, frame, op, first=0).has_gradient:
            return "update"
        return "copy" if op.type == "Cast" else _term(op)

    def _of_gradient(self, frame: Frame, op: Any) -> TablePart | None:
        if op.type in _SUMS_ROWS or op.type in _JOINS:
            return "gradient"
        if op.type in _NO_PASS or not self._any_whole(op.outputs) or self._any_each(op.inputs):
            return None
        # A layer that uses all of the table, as tied output weights, makes such a gradient, too.
        used = any(_takes_a_batch(self._step, frame, one) for one in _gradients_from(op))
        return "gradient" if used else "regularizer"

    def _any_each(self, tensors: Iterable[Any]) -> bool:
        """Return True if one of these has the table's shape for each example: what sums them up
        belongs to the product that they come from, as that of tied output weights."""
        longer = (one.shape for one in tensors if (one.shape.rank or 0) > len(self._shape))
        return any(tuple(shape.as_list())[-len(self._shape) :] == self._shape for shape in longer)

    def _any_whole(self, tensors: Iterable[Any]) -> bool:
        shapes = (one.shape for one in tensors if one.shape.rank == len(self._shape))
        return any(tuple(shape.as_list()) == self._shape for shape in shapes)


class _Origin:
    """Origin of an operation's inputs, back to the gradients and to what joins them."""

    def __init__(self, step: StepGraph, frame: Frame, op: Any, first: int = 1) -> None:
        self.computing: list[At] = []
        """What optimizers do with a gradient."""
        self.joining: list[At] = []
        """What makes one gradient of a table out of those of its lookups."""
        self.has_gradient = False
        seen: set[Key] = set()
        waiting = [(step.source(At(frame, one)), False) for one in op.inputs[first:]]
        while waiting:
            at, beyond = waiting.pop()
            if at.key in seen or at.tensor.shape.rank == 0 or at.op.type in _FROM_A_BATCH:
                continue
            seen.add(at.key)
            if in_gradients(at.op):
                beyond = self.has_gradient = True
                if at.op.type not in _SUMS_ROWS and at.op.type not in _JOINS:
                    continue
                self.joining.append(at)
            elif beyond:
                continue
            else:
                self.computing.append(at)
            waiting.extend((step.source(one), beyond) for one in at.inputs())


def _term(op: Any) -> TablePart | None:
    """Return the regulariser's part if all that is computed of it is one number, as a term of the
    loss, or leaves its graph; None for products with a layer's input and for gathered rows."""
    seen: set[str] = set()
    waiting = [op]
    while waiting:
        at = waiting.pop()
        if at.name in seen or in_gradients(at):
            continue
        seen.add(at.name)
        if at.type in _MULTIPLIES | _GATHERS:
            return None
        waiting.extend(
            user for one in at.outputs if one.shape.rank != 0 for user in one.consumers()
        )
    return "regularizer"


def _gradients_from(op: Any) -> Iterator[Any]:
    """Yield it and what it leads to in its graph, up to where gradients of uses are joined."""
    seen: set[str] = set()
    waiting = [op]
    while waiting:
        at = waiting.pop()
        if at.name in seen or at.type in _JOINS or not in_gradients(at):
            continue
        seen.add(at.name)
        yield at
        waiting.extend(user for one in at.outputs for user in one.consumers())


def _takes_a_batch(step: StepGraph, frame: Frame, op: Any) -> bool:
    """Return True if a batch goes into it; single numbers, as a loss that scales it, do not
    count."""

    def counts(at: At) -> bool:
        return bool(at.tensor.shape.rank != 0 and at.tensor.dtype.name != "resource")

    behind = step.upwards((At(frame, one) for one in op.inputs), counts)
    return any(
        counts(at) and at.op.type in _FROM_A_BATCH and step.captured(at) is None for at in behind
    )


def event_names(step: StepGraph, labels: Mapping[Place, Label | None]) -> dict[str, Label | None]:
    """Return the labels by the names that a profile may have for operations; None for all others.

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


def of_one_table(
    tables: Iterable[tuple[int, dict[Place, TablePart]]],
) -> dict[Place, tuple[int, TablePart] | None]:
    """Return table and part of the operations that are of one table alone, None for others."""
    found: dict[Place, tuple[int, TablePart] | None] = {}
    for table, by_place in tables:
        for place, part in by_place.items():
            known = found.setdefault(place, (table, part))
            if known is None or known[0] != table:
                found[place] = None
    return found


def place_of(frame: Frame, op: Any) -> Place:
    """Return what tells an operation from the others of the step."""
    return frame.index, op.name


def _names(frame: Frame, op: Any) -> Iterator[str]:
    name, around = op.name, frame
    yield name
    while around.caller is not None:
        name, around = f"{around.call.name}/{name}", around.caller
        yield name


_LOSSES: dict[str, SparseOrDense] = {
    "SparseSoftmaxCrossEntropyWithLogits": "sparse",
    "SoftmaxCrossEntropyWithLogits": "dense",
}
"""Losses by the labels that they take. A softmax by itself may be attention's, over the places of a
long text."""
_HANDS_ON = ("Identity", "Cast", "Reshape", "Transpose", "StopGradient")
"""Operations that a weight may pass before it is multiplied by."""
_FEWEST_CLASSES = 1000
"""Own choice: ImageNet's classes are as many, and vocabularies more."""


def softmaxes_in(step: StepGraph, variables: dict[int, Any]) -> Iterator[tuple[Any, Softmax]]:
    """Yield the losses whose logits are products with a variable, with that variable.

    A sampled softmax is none: its logits are products with rows that were gathered.

    Args:
        variables: those of the step, by the ids of their handles.
    """
    for frame, op in step.operations:
        if op.type in _LOSSES:
            found = _of(step, At(frame, op.inputs[0]), _LOSSES[op.type], variables)
            if found is not None:
                yield found


def over_many_classes(step: StepGraph, weights: set[tuple[int, ...]]) -> Iterator[Place]:
    """Yield the operations on a number for each class, where a loss is over many of them.

    An optimizer's operations on weights of a row or a column for each class, whose shapes are
    given, are no such thing; what sums up their gradients, one for each example, is.
    """
    counts = {
        count
        for _, op in step.operations
        if op.type in _LOSSES and op.inputs[0].shape.rank
        if (count := op.inputs[0].shape.as_list()[-1]) is not None and count >= _FEWEST_CLASSES
    }
    if not counts:
        return
    of_classes = {shape for shape in weights if len(shape) == 2 and not counts.isdisjoint(shape)}
    for frame, op in step.operations:
        if calls_functions(op):
            continue
        shapes = {tuple(one.shape.as_list()) for one in (*op.inputs, *op.outputs) if one.shape.rank}
        wide = {shape for shape in shapes if len(shape) > 1 and shape[-1] in counts}
        each = any(len(shape) > 2 and shape[-2:] in of_classes for shape in shapes)
        if wide - weights or ((wide or each) and in_gradients(op)):
            yield place_of(frame, op)


def _of(
    step: StepGraph, logits: At, labels: SparseOrDense, variables: dict[int, Any]
) -> tuple[Any, Softmax] | None:
    classes = _last(logits)
    product = None if classes is None else _product_behind(step, logits, classes)
    if classes is None or product is None:
        return None
    weights = _weights(step, product, classes, variables)
    if weights is None:
        return None
    rows, columns = weights.shape.as_list()
    return of_all_devices(weights), Softmax(
        weights=weights.name.removesuffix(":0"),
        classes=classes,
        features=rows if columns == classes else columns,
        labels=labels,
        device=weights.device or None,
    )


def _weights(step: StepGraph, product: At, classes: int, variables: dict[int, Any]) -> Any:
    """Return the variable of a product, with a row or a column for each class; or None."""
    for factor in product.inputs():
        at = step.source(factor)
        while at.op.type in _HANDS_ON:
            at = step.source(at.inputs()[0])
        handle = step.captured(at.inputs()[0]) if at.op.type == "ReadVariableOp" else None
        variable = variables.get(id(handle))
        if variable is not None and variable.shape.rank == 2 and classes in variable.shape:
            return variable
    return None


def _product_behind(step: StepGraph, logits: At, classes: int) -> At | None:
    """Return the product that logits are made of, through tensors with a number for each class."""
    seen = set()
    following: At | None = logits
    while following is not None:
        at = step.source(following)
        if at.op.type in _MULTIPLIES:
            return at
        if at.key in seen:
            return None
        seen.add(at.key)
        wide = [one for one in at.inputs() if (one.tensor.shape.rank or 0) >= 2]
        following = next((one for one in wide if _last(one) == classes), None)
    return None


def _last(at: At) -> int | None:
    """Return its last dimension."""
    last = at.tensor.shape.as_list()[-1] if at.tensor.shape.rank else None
    return None if last is None else int(last)
