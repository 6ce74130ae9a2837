"""Which operations make two passes over a pipeline differ."""

from __future__ import annotations

from typing import Any

from pipediag import tensorflow_names
from pipediag.capture.replay.graph import Graph, Node
from pipediag.capture.replay.refusal import said
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.tensorflow_names import DRAWING_KINDS


def draws_random(operation: RecordedOperation) -> bool:
    """Whether it draws random numbers, by its kind or in its function."""
    names = operation.function.graph_ops if operation.function else {}
    return operation.kind in DRAWING_KINDS or tensorflow_names.draws_random(names)


def _reorders(operation: RecordedOperation) -> bool:
    """Whether two passes may see its elements in another order."""
    parameters = operation.parameters
    if operation.kind == "shuffle":
        return parameters.get("reshuffle_each_iteration") is not False
    return operation.kind == "list_files" or parameters.get("deterministic") is False


def random_upstream(dataset: Any) -> str | None:
    """The nearest operation that makes two passes differ, as the report names it, or None.

    What Python functions do can't be known: they count as the same on every pass.
    """
    graph = Graph(dataset)
    for node, call in reversed(list(graph.calls())):
        if is_random(node):
            return said(call.operation)
    return None


def is_random(node: Node) -> bool:
    """Whether two passes over this node differ though they agree up to here."""
    return any(draws_random(operation) or _reorders(operation) for operation in node.operations)
