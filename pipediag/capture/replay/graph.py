"""The pipeline that a loop consumes as nodes that can be rearranged and built again.

A call can be made again with other arguments; so can calls within another operation's function,
which is traced again with them: `flat_map`'s maps.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pipediag import tensorflow_names
from pipediag.capture.pipelines.calls import Call, InnerCall, call_of, replaying, user_site
from pipediag.capture.process import free_memory_bytes
from pipediag.capture.replay import NotReplayableError, at_start, said
from pipediag.capture.replay.elements import first_elements, tensor_bytes
from pipediag.session.recording import RecordedOperation
from pipediag.tensorflow_names import DRAWING_KINDS
from pipediag.vocabulary import Scalar

_MEASURED_ELEMENTS = 8
_SHARE_OF_MEMORY = 0.5
"""Share of the free memory for a cache: the script needs memory, too."""


def cached(inputs: list[Any], elements: int | None = None) -> Any:
    """Return the given dataset with a full cache of so many elements, or with a plain one."""
    (dataset,) = inputs
    if elements is None:
        return dataset.cache()
    most = most_elements_in_memory(dataset)
    if 0 <= most < elements:
        raise NotReplayableError(
            f"The cache would hold {elements:,} elements, and there is memory for {most:,}."
        )
    return filled_cache(dataset.take(elements))


def on_device(inputs: list[Any], device: str) -> Any:
    """Return the dataset that is given, with a copy of its elements to the device."""
    from tensorflow.python.data.experimental.ops import prefetching_ops
    from tensorflow.python.framework import config, device_spec

    # TensorFlow itself would silently take another device.
    wanted = device_spec.DeviceSpecV2.from_string(device)
    if (wanted.device_index or 0) >= len(config.list_logical_devices(wanted.device_type)):
        raise NotReplayableError(f"There is no device {device} here.")
    return inputs[0].apply(prefetching_ops.prefetch_to_device(device))


def filled_cache(dataset: Any) -> Any:
    """Return all elements of a dataset, from memory, again and again."""
    from tensorflow.python.framework import constant_op, dtypes

    kept = dataset.cache()
    kept.reduce(constant_op.constant(0, dtypes.int64), lambda count, *_: count + 1)
    return kept.repeat()


def most_elements_in_memory(dataset: Any) -> int:
    """Return the number of a dataset's elements that a cache may hold; -1 where that is not
    known."""
    measured = first_elements(dataset, _MEASURED_ELEMENTS).elements
    if not measured:
        raise NotReplayableError("There are no elements to cache.")
    free, size = free_memory_bytes(), sum(map(tensor_bytes, measured)) // len(measured)
    return -1 if free is None else int(free * _SHARE_OF_MEMORY / max(1, size))


_WRAPPERS: dict[str, Callable[[Any, Any], Any]] = {
    "_OptionsDataset": lambda old, given: given.with_options(old.options()),
    "_PrefetchDataset": lambda old, given: given.prefetch(old._buffer_size),
    "_RestructuredDataset": lambda old, given: type(old)(given, old.element_spec),
    # A trial takes a number of steps of its own; a filled cache goes on for ever.
    "_AssertCardinalityDataset": lambda _, given: given,
    "_CopyToDeviceDataset": lambda old, given: type(old)(
        given, old._target_device, old._source_device_string
    ),
}
"""Functions that make the same wrapper around another dataset, where no recorded call made it."""


def _wrapped_again(dataset: Any, inputs: list[Any]) -> Any:
    name = type(dataset).__name__
    make = _WRAPPERS.get(name)
    if make is None or len(inputs) != 1:
        raise NotReplayableError(
            f"The elements pass through a {name.strip('_')}, which Pipediag can't build again."
        )
    return make(dataset, inputs[0])


def _datasets_read_by(call: Call) -> list[Any]:
    from tensorflow.python.data.ops import dataset_ops
    from tensorflow.python.util import nest

    arguments = nest.flatten((call.args, call.kwargs))
    found = {id(one): one for one in arguments if isinstance(one, dataset_ops.DatasetV2)}
    return list(found.values())


def given_arguments(node: Node, inputs: list[Any]) -> dict[str, Any]:
    """Return the arguments of the node's call by name, with other datasets and its parameters."""
    return _bound(node, inputs).arguments


def called_again(node: Node, inputs: list[Any], **others: Any) -> Any:
    """Make the node's call again, with other datasets, its parameters, and these arguments."""
    assert node.call is not None
    given = _bound(node, inputs)
    given.arguments.update(others)
    return node.call.function(*given.args, **given.kwargs)


def _bound(node: Node, inputs: list[Any]) -> inspect.BoundArguments:
    from tensorflow.python.util import nest

    call = node.call
    assert call is not None
    if not call.repeatable:
        raise NotReplayableError(
            f"{at_start(said(call.operation))} hands out the script's own data, so it can't be "
            "called again with other parameters."
        )
    new = {id(old): one for old, one in zip(_datasets_read_by(call), inputs, strict=True)}
    args, kwargs = nest.map_structure(lambda one: new.get(id(one), one), (call.args, call.kwargs))
    given = inspect.signature(call.function).bind(*args, **kwargs)
    _set_parameters(given, node.parameters, call.operation)
    return given


def _set_parameters(
    given: inspect.BoundArguments, parameters: dict[str, Scalar], operation: RecordedOperation
) -> None:
    for name, value in parameters.items():
        if name not in given.signature.parameters:
            raise NotReplayableError(f"{at_start(said(operation))} has no parameter {name}.")
        given.arguments[name] = value


def draws_random(operation: RecordedOperation) -> bool:
    """Return True if it draws random numbers, by its kind or in its function."""
    names = operation.function.graph_ops if operation.function else {}
    return operation.kind in DRAWING_KINDS or tensorflow_names.draws_random(names)


def reorders(operation: RecordedOperation, changed: Mapping[str, Scalar] | None = None) -> bool:
    """Return True if two passes may see its elements in another order; `changed` are parameters."""
    parameters = {**operation.parameters, **(changed or {})}
    if operation.kind == "shuffle":
        return parameters.get("reshuffle_each_iteration") is not False
    if operation.kind == "list_files":
        return parameters.get("shuffle") is not False
    return parameters.get("deterministic") is False


def is_random(node: Node) -> bool:
    """Return True if two passes over this node differ though they agree up to here."""
    return any(map(draws_random, node.operations)) or any(
        reorders(one, node.parameters if one is node.operation else None) for one in node.operations
    )


Parameters = dict[str, dict[str, Scalar]]
"""Arguments to change, by operation."""


def _calls_within(operations: Sequence[RecordedOperation], parameters: Parameters) -> InnerCall:
    """Return the function that makes a function's calls, as it is traced again, with other
    arguments."""
    waiting = list(operations)

    def call(kind: str, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        alike = [one for one in waiting if one.kind == kind]
        if not alike:
            return function(*args, **kwargs)
        site = user_site()
        place = (site.file, site.line) if site else (None, None)
        # A class given as the function has no line of its own: there its kind must do.
        operation = next((one for one in alike if (one.file, one.line) == place), alike[0])
        # Calls at one place come in the order of their recording, in every tracing anew.
        waiting.remove(operation)
        waiting.append(operation)
        given = inspect.signature(function).bind(*args, **kwargs)
        _set_parameters(given, parameters.get(operation.id, {}), operation)
        return function(*given.args, **given.kwargs)

    return call


Make = Callable[[list[Any]], Any]
"""Builds a dataset from the datasets that it reads from."""


@dataclass(eq=False)
class Node:
    """A dataset of the pipeline: one that the script made, or one that a change adds."""

    inputs: list[Node]
    make: Make | None = None
    """Function that builds it where no recorded call does: a wrapper, an added or replaced
    operation."""
    call: Call | None = None
    dataset: Any = None
    """Dataset that the script made; used as it is where nothing changed up to here."""
    parameters: dict[str, Scalar] = field(default_factory=dict)
    inner: Parameters = field(default_factory=dict)
    """Parameters to change in operations that its function makes."""

    @property
    def operation(self) -> RecordedOperation | None:
        return self.call.operation if self.call else None

    @property
    def operations(self) -> list[RecordedOperation]:
        return [self.call.operation, *self.call.inside] if self.call else []

    @property
    def changed(self) -> bool:
        """Return True if the node itself is changed; its inputs may be changed all the same."""
        altered = self.parameters or self.inner or (self.make and self.call)
        return self.dataset is None or bool(altered)

    @property
    def read_before(self) -> list[Any]:
        return _datasets_read_by(self.call) if self.call else list(self.dataset._inputs())

    def is_as_before(self, inputs: list[Any]) -> bool:
        """Return True if its dataset can be used as it is, given these inputs."""
        if self.changed:
            return False
        before = self.read_before
        return len(before) == len(inputs) and all(map(operator.is_, before, inputs))


def nodes_up_to(top: Node, ends: Callable[[Node], bool] = lambda _: False) -> list[Node]:
    """Return all nodes that a node reads from, and the node itself, each after its inputs.

    Nothing above a node at which it `ends` is among them.
    """
    ordered: dict[Node, None] = {}

    def visit(node: Node) -> None:
        for upstream in () if ends(node) else node.inputs:
            if upstream not in ordered:
                visit(upstream)
        ordered[node] = None

    visit(top)
    return list(ordered)


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
        make = None if call else partial(_wrapped_again, dataset)
        node = self._nodes[id(dataset)] = Node([], make, call, dataset)
        node.inputs = [self._read(upstream) for upstream in node.read_before]
        return node

    def nodes(self) -> list[Node]:
        return nodes_up_to(self.end)[:-1]

    def calls(self) -> Iterator[tuple[Node, Call]]:
        return ((node, node.call) for node in self.nodes() if node.call is not None)

    def find(self, op_id: str) -> Node | None:
        return next((node for node, call in self.calls() if call.operation.id == op_id), None)

    def node(self, op_id: str) -> Node:
        """Return the node of an operation on the pipeline itself, or raise NotReplayableError."""
        node = self.find(op_id)
        if node is not None:
            return node
        outer = self.outer_of(op_id)
        if outer is None:
            raise NotReplayableError(f"The pipeline of this loop has no operation {op_id}.")
        raise NotReplayableError(
            f"{at_start(said(outer[1]))} is made by another operation's function, where Pipediag "
            "can only change arguments."
        )

    def outer_of(self, op_id: str) -> tuple[Node, RecordedOperation] | None:
        """Return the node whose function made an operation, and the operation."""
        inside = ((node, one) for node, call in self.calls() for one in call.inside)
        return next(((node, one) for node, one in inside if one.id == op_id), None)

    def kept(self) -> set[int]:
        kept: set[int] = set()
        for node in self.nodes():
            inputs = [upstream.dataset for upstream in node.inputs]
            if node.is_as_before(inputs) and kept.issuperset(map(id, inputs)):
                kept.add(id(node.dataset))
        return kept

    def consumers(self, node: Node) -> list[Node]:
        return [other for other in (*self.nodes(), self.end) if node in other.inputs]

    def splice_out(self, node: Node) -> None:
        """Remove a node: its readers read from its input."""
        (upstream,) = node.inputs
        for consumer in self.consumers(node):
            consumer.inputs = [upstream if i is node else i for i in consumer.inputs]

    def splice_in(self, node: Node, after: Node) -> None:
        """Put a node between `after` and what reads from that."""
        for consumer in self.consumers(after):
            consumer.inputs = [node if i is after else i for i in consumer.inputs]
        node.inputs = [after]

    def append(self, node: Node) -> None:
        node.inputs, self.end.inputs = self.end.inputs, [node]

    def build(self, top: Node | None = None, fixed: dict[int, Any] | None = None) -> Any:
        """Build the dataset of `top`, or else of the last node; `fixed` are datasets in the places
        of others, by the ids of these."""
        return _build(top or self.end.inputs[0], {}, fixed or {})


def _build(node: Node, built: dict[Node, Any], fixed: dict[int, Any]) -> Any:
    if id(node.dataset) in fixed:
        return fixed[id(node.dataset)]
    if node not in built:
        inputs = [_build(upstream, built, fixed) for upstream in node.inputs]
        built[node] = node.dataset if node.is_as_before(inputs) else _made(node, inputs)
    return built[node]


def _made(node: Node, inputs: list[Any]) -> Any:
    token = replaying.set(_calls_within(node.operations[1:], node.inner))
    try:
        return node.make(inputs) if node.make is not None else called_again(node, inputs)
    finally:
        replaying.reset(token)
