"""The pipeline that a loop consumes as nodes that can be rearranged and built again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pipediag.capture.pipelines.call import MARK, Call, call_of, keep, replaying
from pipediag.capture.replay.arguments import datasets_read_by, given_arguments, with_datasets
from pipediag.capture.replay.inner import Inner
from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.capture.replay.wrappers import wrapped_again
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.vocabulary import Scalar

Make = Callable[[list[Any]], Any]
"""Builds a dataset from the datasets that it reads from."""
OnElements = Callable[..., Any]
"""A function for a dataset's `map`."""


@dataclass(eq=False)
class Node:
    """A dataset of the pipeline: one that the script made, or one that a change adds."""

    inputs: list[Node]
    make: Make | None = None
    """Builds it where no recorded call does: a wrapper, an added or replaced operation."""
    call: Call | None = None
    dataset: Any = None
    """What the script made; used as it is where nothing changed up to here."""
    parameters: dict[str, Scalar] = field(default_factory=dict)
    inner: Inner | None = None
    """Changes within its function."""

    @property
    def operation(self) -> RecordedOperation | None:
        return self.call.operation if self.call else None

    @property
    def operations(self) -> list[RecordedOperation]:
        """Its operation, and those that its function makes."""
        return [self.call.operation, *self.call.inside] if self.call else []

    @property
    def changed(self) -> bool:
        """Whether it differs by itself; what it reads from may differ all the same."""
        altered = self.parameters or self.inner or (self.make and self.call)
        return self.dataset is None or bool(altered)

    @property
    def read_before(self) -> list[Any]:
        """The datasets that it read as the script wrote it."""
        if self.dataset is None:
            return []
        return datasets_read_by(self.call) if self.call else list(self.dataset._inputs())


class Graph:
    """The nodes upstream of a loop. `end` stands for the loop and reads the last dataset."""

    def __init__(self, dataset: Any, layers: OnElements | None = None) -> None:
        """Read the pipeline that ends in a dataset.

        `layers` is what a trial's model leaves to the pipeline.

        Raises:
            NotReplayableError: it is too long a chain to walk.
        """
        self.layers = layers
        self._nodes: dict[int, Node] = {}
        try:
            self.end = Node([self._read(dataset)])
        except RecursionError:
            too_deep = True
        else:
            too_deep = False
        if too_deep:
            raise NotReplayableError("The pipeline is too long a chain of datasets to build again.")

    def _read(self, dataset: Any) -> Node:
        known = self._nodes.get(id(dataset))
        if known is not None:
            return known
        call = call_of(dataset)
        make = None if call else partial(wrapped_again, dataset)
        node = self._nodes[id(dataset)] = Node([], make, call, dataset)
        node.inputs = [self._read(upstream) for upstream in node.read_before]
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
        del ordered[self.end]
        return list(ordered)

    def calls(self) -> Iterator[tuple[Node, Call]]:
        """The nodes that recorded calls made, and the calls."""
        return ((node, node.call) for node in self.nodes() if node.call is not None)

    def find(self, op_id: str) -> Node | None:
        """The node of an operation on the pipeline itself."""
        return next((node for node, call in self.calls() if call.operation.id == op_id), None)

    def outer_of(self, op_id: str) -> tuple[Node, RecordedOperation] | None:
        """The node whose function made an operation, and the operation."""
        for node, call in self.calls():
            for operation in call.inside:
                if operation.id == op_id:
                    return node, operation
        return None

    def kept(self) -> set[int]:
        """Ids of the datasets that are as the script made them, all that is upstream included."""
        kept: set[int] = set()
        for node in self.nodes():
            as_before = _same(node.read_before, [upstream.dataset for upstream in node.inputs])
            upstream_kept = all(id(upstream.dataset) in kept for upstream in node.inputs)
            if not node.changed and as_before and upstream_kept:
                kept.add(id(node.dataset))
        return kept

    def consumers(self, node: Node) -> list[Node]:
        """The nodes that read from a node, the loop among them."""
        return [other for other in (*self.nodes(), self.end) if node in other.inputs]

    def splice_out(self, node: Node) -> None:
        """What read from the node reads from what it read from."""
        (upstream,) = node.inputs
        for consumer in self.consumers(node):
            consumer.inputs = [upstream if i is node else i for i in consumer.inputs]

    def splice_in(self, node: Node, after: Node) -> None:
        """What read from `after` reads from the node, which reads from `after`."""
        for consumer in self.consumers(after):
            consumer.inputs = [node if i is after else i for i in consumer.inputs]
        node.inputs = [after]

    def append(self, node: Node) -> None:
        """The loop reads from the node, which reads from what the loop read from."""
        node.inputs, self.end.inputs = self.end.inputs, [node]

    def build(self, top: Node | None = None, fixed: dict[Node, Any] | None = None) -> Any:
        """The dataset that the loop reads.

        Args:
            top: the node to build instead of the last one.
            fixed: datasets to use in the places of some nodes.
        """
        built: dict[Node, Any] = dict(fixed or {})
        token = replaying.set(Inner(()))
        try:
            return _build(top or self.end.inputs[0], built)
        finally:
            replaying.reset(token)


def _same(before: list[Any], now: list[Any]) -> bool:
    return len(before) == len(now) and all(b is n for b, n in zip(before, now, strict=True))


def _build(node: Node, built: dict[Node, Any]) -> Any:
    if node not in built:
        inputs = [_build(upstream, built) for upstream in node.inputs]
        as_before = not node.changed and _same(node.read_before, inputs)
        built[node] = node.dataset if as_before else _made(node, inputs)
    return built[node]


def _made(node: Node, inputs: list[Any]) -> Any:
    call = node.call
    if call is None:
        assert node.make is not None
        return node.make(inputs)
    token = replaying.set(node.inner or Inner(call.inside))
    try:
        if node.make is not None:
            made = node.make(inputs)
        else:
            given = given_arguments(call, inputs, node.parameters)
            made = call.function(*given.args, **given.kwargs)
    finally:
        replaying.reset(token)
    if not any(made is given for given in inputs):
        _claim(made, call, inputs)
    return made


def _claim(made: Any, call: Call, inputs: list[Any]) -> None:
    """Mark what a call made again as recording does, so that it can be found and built again."""
    args, kwargs = with_datasets(call, inputs) if call.repeatable else ((), {})
    keep(made, replace(call, args=args, kwargs=kwargs))
    pending = [made]
    while pending:
        current = pending.pop()
        if MARK not in current.__dict__ and not any(current is given for given in inputs):
            current.__dict__[MARK] = call.operation.id
            pending.extend(current._inputs())
