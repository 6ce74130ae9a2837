"""The pipeline that a loop consumes as nodes that can be rearranged and built again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pipediag.capture.replay.call import MARK, Call, call_of, keep, replaying
from pipediag.capture.replay.inner import Inner
from pipediag.capture.replay.refusal import NotReplayableError, said
from pipediag.capture.replay.wrappers import wrapped_again
from pipediag.session.edits import Setting
from pipediag.session.recording import RecordedOperation

Make = Callable[[list[Any]], Any]
"""Builds a dataset from the datasets that it reads from."""


@dataclass(eq=False)
class Node:
    """A dataset of the pipeline: one that the script made, or one that a change adds."""

    inputs: list[Node]
    make: Make | None = None
    """Builds it where no recorded call does: a wrapper, an added or replaced operation."""
    call: Call | None = None
    dataset: Any = None
    """What the script made; used as it is where nothing changed up to here."""
    parameters: dict[str, Setting] = field(default_factory=dict)
    inner: Inner | None = None
    """Changes within its function."""

    @property
    def operation(self) -> RecordedOperation | None:
        return self.call.operation if self.call else None

    @property
    def changed(self) -> bool:
        """Whether it differs by itself; what it reads from may differ all the same."""
        altered = self.parameters or self.inner or (self.make and self.call)
        return self.dataset is None or bool(altered)


class Graph:
    """The nodes upstream of a loop. `end` stands for the loop and reads the last dataset."""

    def __init__(self, dataset: Any) -> None:
        self._nodes: dict[int, Node] = {}
        self.end = Node([self._read(dataset)])

    def _read(self, dataset: Any) -> Node:
        known = self._nodes.get(id(dataset))
        if known is not None:
            return known
        call = call_of(dataset)
        node = Node([], call=call, dataset=dataset)
        node.inputs = [self._read(upstream) for upstream in _read_by(node)]
        if call is None:
            node.make = partial(wrapped_again, dataset)
        self._nodes[id(dataset)] = node
        return node

    def nodes(self) -> list[Node]:
        """Every node that the loop still reads, each after what it reads from."""
        ordered: dict[Node, None] = {}

        def visit(node: Node) -> None:
            for upstream in node.inputs:
                if upstream not in ordered:
                    visit(upstream)
            ordered[node] = None

        visit(self.end)
        return list(ordered)

    def operations(self) -> Iterator[Node]:
        """The nodes that recorded calls made."""
        return (node for node in self.nodes() if node.call is not None)

    def find(self, op_id: str) -> Node | None:
        """The node of an operation on the pipeline itself."""
        found = [n for n in self.operations() if n.operation and n.operation.id == op_id]
        return found[0] if found else None

    def outer_of(self, op_id: str) -> tuple[Node, RecordedOperation] | None:
        """The node whose function made an operation, and the operation."""
        for node in self.operations():
            for operation in node.call.inside if node.call else ():
                if operation.id == op_id:
                    return node, operation
        return None

    def is_kept(self, node: Node) -> bool:
        """Whether a node is what the script made, and so is everything upstream of it."""
        if node is self.end or node.changed:
            return False
        before, now = _read_by(node), [upstream.dataset for upstream in node.inputs]
        same = len(before) == len(now) and all(b is n for b, n in zip(before, now, strict=True))
        return same and all(self.is_kept(upstream) for upstream in node.inputs)

    def consumers(self, node: Node) -> list[Node]:
        """The nodes that read from a node."""
        return [other for other in self.nodes() if node in other.inputs]

    def splice_out(self, node: Node) -> None:
        """What read from a node reads from what it read from."""
        (upstream,) = node.inputs
        for consumer in self.consumers(node):
            consumer.inputs = [upstream if i is node else i for i in consumer.inputs]

    def splice_in(self, node: Node, after: Node) -> None:
        """What read from `after` reads from the node, which reads from `after`."""
        for consumer in self.consumers(after):
            consumer.inputs = [node if i is after else i for i in consumer.inputs]
        node.inputs = [after]

    def build(self, fixed: dict[Node, Any] | None = None, top: Node | None = None) -> Any:
        """The dataset that the loop, or `top`, reads.

        Args:
            fixed: datasets to use in place of what some nodes would be.
            top: the node to build instead of the last one.
        """
        built: dict[Node, Any] = dict(fixed or {})
        return _build(top or self.end.inputs[0], built)


def _build(node: Node, built: dict[Node, Any]) -> Any:
    if node not in built:
        inputs = [_build(upstream, built) for upstream in node.inputs]
        built[node] = _made(node, inputs)
    return built[node]


def _made(node: Node, inputs: list[Any]) -> Any:
    if not node.changed and _as_before(node, inputs):
        return node.dataset
    made = node.make(inputs) if node.make is not None else _called_again(node, inputs)
    if node.call is not None:
        _claim(made, node.call, inputs)
    return made


def _as_before(node: Node, inputs: list[Any]) -> bool:
    before = _read_by(node)
    return len(before) == len(inputs) and all(
        new is old for new, old in zip(inputs, before, strict=True)
    )


def _read_by(node: Node) -> list[Any]:
    """The datasets that a recorded node read from."""
    if node.call is None:
        return list(node.dataset._inputs())
    return _read_by_call(node.call)


def _called_again(node: Node, inputs: list[Any]) -> Any:
    call = node.call
    assert call is not None
    given = given_arguments(node, inputs)
    token = replaying.set(node.inner or Inner(call.inside))
    try:
        return call.function(*given.args, **given.kwargs)
    finally:
        replaying.reset(token)


def given_arguments(node: Node, inputs: list[Any]) -> inspect.BoundArguments:
    """The arguments of a call, with other datasets and the changed parameters.

    Raises:
        NotReplayableError: a parameter that the operation does not have, or a source of data.
    """
    call = node.call
    assert call is not None
    if not call.repeatable:
        raise NotReplayableError(f"{said(call.operation).capitalize()} can't be called again.")
    new = {id(o): n for o, n in zip(_read_by(node), inputs, strict=True)}
    signature = inspect.signature(call.function)
    given = signature.bind(*_with(call.args, new), **_with(call.kwargs, new))
    for name, value in node.parameters.items():
        if name not in signature.parameters:
            raise NotReplayableError(f"{call.operation.kind} has no parameter {name}.")
        given.arguments[name] = value
    return given


def _claim(made: Any, call: Call, inputs: list[Any]) -> None:
    """Mark what a call made again as the recorded call did, so that it can be found and built."""
    old = _read_by_call(call)
    new = {id(o): n for o, n in zip(old, inputs, strict=False)}
    if any(made is given for given in inputs):
        return
    keep(made, replace(call, args=_with(call.args, new), kwargs=_with(call.kwargs, new)))
    pending = [made]
    while pending:
        current = pending.pop()
        if MARK not in current.__dict__ and not any(current is given for given in inputs):
            current.__dict__[MARK] = call.operation.id
            pending.extend(current._inputs())


def _read_by_call(call: Call) -> list[Any]:
    return datasets_in((call.args, call.kwargs)) if call.repeatable else []


def datasets_in(value: Any) -> list[Any]:
    """The datasets in nested arguments, each once, in their order."""
    found: dict[int, Any] = {}
    for dataset in _walk(value):
        found.setdefault(id(dataset), dataset)
    return list(found.values())


def _walk(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _walk(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _walk(item)
    elif is_dataset(value):
        yield value


def is_dataset(value: Any) -> bool:
    """Whether a value is a tf.data dataset."""
    from tensorflow.python.data.ops import dataset_ops

    return isinstance(value, dataset_ops.DatasetV2)


def _with(value: Any, new: dict[int, Any]) -> Any:
    """Nested arguments with other datasets in the places of those that `new` names by id."""
    if id(value) in new:
        return new[id(value)]
    if not datasets_in(value):
        return value
    if isinstance(value, dict):
        items = {key: _with(item, new) for key, item in value.items()}
        return items if type(value) is dict else type(value)(items)
    if isinstance(value, tuple | list):
        changed = [_with(item, new) for item in value]
        return type(value)(*changed) if hasattr(value, "_fields") else type(value)(changed)
    return value
