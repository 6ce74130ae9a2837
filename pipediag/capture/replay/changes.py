"""Changes of a pipeline's nodes, applied in a fixed order, not in the order in which they are
given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any, TypeVar

from pipediag.capture.replay import NotReplayableError, at_start, said
from pipediag.capture.replay.graph import Graph, Node, cached, draws_random, nodes_up_to, on_device
from pipediag.capture.replay.replacing import (
    REPLACEMENTS,
    called_in_processes,
    for_batches,
    in_batches,
    padding_cut,
)
from pipediag.session.edits import (
    CUT_PADDING,
    IN_BATCHES,
    IN_PROCESSES,
    Change,
    Insert,
    Move,
    Remove,
    Replace,
    SetModel,
    SetOptions,
    SetParameters,
    contradiction,
    cuts_rows,
)
from pipediag.tensorflow_names import BATCHING
from pipediag.vocabulary import Scalar


def _with_options(options: dict[str, Scalar], inputs: list[Any]) -> Any:
    from tensorflow.python.data.ops import options as module

    chosen = module.Options()
    for name, value in options.items():
        *groups, last = name.split(".")
        holder = chosen
        for group in groups:
            holder = getattr(holder, _attribute(holder, group))
        setattr(holder, _attribute(holder, last), value)
    return inputs[0].with_options(chosen)


def _attribute(holder: Any, name: str) -> str:
    # The recording leaves out the prefix: `optimization.apply_default_optimizations`.
    return name if hasattr(type(holder), name) else f"experimental_{name}"


_AT_THE_END = "prefetch_to_device"
_INSERTED: dict[str, Callable[..., Any]] = {
    "cache": cached,
    CUT_PADDING: padding_cut,
    _AT_THE_END: on_device,
}
_INFINITE = -1
"""The value of `tf.data.INFINITE_CARDINALITY`."""
ANY_LENGTH = "any_length"
"""Name of the setting with which a model takes rows of another length than it declares."""
C = TypeVar("C")


def apply(graph: Graph, changes: Sequence[Change], endless: bool = False) -> None:
    """Rearrange the graph; nothing is built yet. Other changes are no part of it: see
    `model_settings`, rewriting.py and the hooks on Keras.

    Parameters are set before anything moves; added operations go behind the places that others
    have been moved to; what is left out goes last, so that a change may still name it as its place.
    A copy to a device must be the end of a pipeline, so that comes behind an endless repeat.
    """
    changes = [change for place, change in enumerate(changes) if change not in changes[:place]]
    _refuse_contradictions(graph, changes)
    for one in _of(changes, SetParameters):
        _set(graph, one)
    of_functions = [one for one in _of(changes, Replace) if one.kind in (IN_BATCHES, IN_PROCESSES)]
    _replace(graph, [one for one in _of(changes, Replace) if one not in of_functions])
    _move(graph, _of(changes, Move))
    _replace(graph, of_functions)
    inserts = _of(changes, Insert)
    _insert(graph, [one for one in inserts if one.kind != _AT_THE_END])
    for removed in _of(changes, Remove):
        graph.splice_out(graph.node(removed.op_id))
    options = {
        name: given for one in _of(changes, SetOptions) for name, given in one.options.items()
    }
    if options:
        graph.append(Node([], partial(_with_options, options)))
    if endless:
        graph.append(Node([], make=_repeated))
    for last in inserts:
        if last.kind == _AT_THE_END:
            graph.append(Node([], partial(_INSERTED[last.kind], **last.parameters)))


def model_settings(changes: Sequence[Change]) -> dict[str, Any]:
    """Return the settings that the changes make on the model, which is no part of the graph."""
    settings: dict[str, Any] = {}
    for change in _of(changes, SetModel):
        settings |= change.settings
    return settings | ({ANY_LENGTH: True} if any(map(cuts_rows, changes)) else {})


def _repeated(inputs: list[Any]) -> Any:
    (dataset,) = inputs
    return dataset if int(dataset.cardinality()) == _INFINITE else dataset.repeat()


def _of(changes: Sequence[Change], kind: type[C]) -> list[C]:
    return [change for change in changes if isinstance(change, kind)]


def _refuse_contradictions(graph: Graph, changes: Sequence[Change]) -> None:
    places = [one for one in changes if isinstance(one, SetParameters | Remove | Move | Replace)]
    for one, other in combinations(places, 2):
        both = {type(one), type(other)}
        contradict = Remove in both or (len(both) == 1 and SetParameters not in both)
        if contradict and one.op_id == other.op_id:
            raise _contradiction(graph, one.op_id)
    why = contradiction(changes, [call.operation.kind for _, call in graph.calls()])
    if why is not None:
        raise NotReplayableError(why)


def _contradiction(graph: Graph, op_id: str) -> NotReplayableError:
    node = graph.find(op_id)
    name = said(node.operation) if node and node.operation else "an operation"
    return NotReplayableError(f"Two changes contradict each other at {name}.")


def _set(graph: Graph, change: SetParameters) -> None:
    outer = None if graph.find(change.op_id) else graph.outer_of(change.op_id)
    if outer is not None:
        outer[0].inner.setdefault(change.op_id, {}).update(change.parameters)
    else:
        graph.node(change.op_id).parameters.update(change.parameters)


def _replace(graph: Graph, changes: list[Replace]) -> None:
    for change in changes:
        node = graph.node(change.op_id)
        if change.kind == IN_PROCESSES:
            called_in_processes(node, int(change.parameters["processes"] or 1))
        elif change.kind == IN_BATCHES:
            node.make = partial(in_batches, node, change)
        else:
            assert node.operation is not None
            make = REPLACEMENTS[node.operation.kind, change.kind]
            node.make = partial(make, node, change.parameters)


def _insert(graph: Graph, changes: list[Insert]) -> None:
    # The last one first, so that they end up in the order in which they were given.
    for change in reversed(changes):
        after = graph.node(change.after)
        if change.kind == "cache":
            for one in (each for node in nodes_up_to(after) for each in node.operations):
                if draws_random(one):
                    raise NotReplayableError(
                        f"{at_start(said(one))} draws random numbers; a cache behind it would "
                        "hand out the same ones in every epoch."
                    )
        make = partial(_INSERTED[change.kind], **change.parameters)
        graph.splice_in(Node([], make), after)


def _move(graph: Graph, moves: list[Move]) -> None:
    """Move operations; those that go to the same place keep the order they had."""
    order = {call.operation.id: n for n, (_, call) in enumerate(graph.calls())}
    pending = sorted(moves, key=lambda move: order.get(move.op_id, -1), reverse=True)
    while pending:
        waiting = {move.op_id for move in pending}
        ready = next((move for move in pending if move.after not in waiting), None)
        if ready is None:
            raise _contradiction(graph, pending[0].op_id)
        _move_one(graph, ready)
        pending.remove(ready)


def _move_one(graph: Graph, change: Move) -> None:
    node, after = graph.node(change.op_id), graph.node(change.after)
    if node is after or node.inputs == [after]:
        return
    down = _chain(after, node)
    chain = _chain(node, after) or down
    # Whatever else reads from within the chain would get other elements, too.
    forked = chain is None or any(len(graph.consumers(n)) > 1 for n in chain[1:])
    assert node.operation is not None
    assert after.operation is not None
    if forked or len(node.inputs) != 1:
        raise NotReplayableError(
            f"{at_start(said(node.operation))} and {said(after.operation)} are not on one "
            "chain of operations."
        )
    if any(map(draws_random, node.operations)):
        raise NotReplayableError(
            f"{at_start(said(node.operation))} draws random numbers, and would draw others in "
            "another place."
        )
    batched = any(one.operation and one.operation.kind in BATCHING for one in down or ())
    if batched:
        node.make = for_batches(node, change) or node.make
    graph.splice_out(node)
    graph.splice_in(node, after)


def _chain(downstream: Node, upstream: Node) -> list[Node] | None:
    """Return the nodes from one up to the other, or None if one reads from several datasets."""
    chain = nodes_up_to(downstream, lambda one: one is upstream)[::-1]
    alone = all(len(one.inputs) == 1 for one in chain if one is not upstream)
    return chain if alone and upstream in chain else None
