"""Checks on real elements that a changed pipeline hands out the same batches, before it is timed.

Only the part that changes is read, cut out of the pipeline as written and as changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from pipediag.capture.replay import NotReplayableError
from pipediag.capture.replay.changes import apply
from pipediag.capture.replay.elements import (
    Reading,
    dataset_of,
    difference_of,
    first_elements,
)
from pipediag.capture.replay.graph import Graph, Node, is_random, nodes_up_to, reorders
from pipediag.capture.replay.rebuilding import built, refuse_to_disturb, without_caches
from pipediag.session.edits import (
    PASSES_DIFFER,
    RESULTS_DIFFER,
    Change,
    Check,
    Move,
    adds_cache,
    as_written,
    touched,
)
from pipediag.vocabulary import Scalar

_ROWS_OF_A_CHECK = 16
"""Batches are made this small for a check, or a slow function would cost seconds of it."""
_FEWEST_ELEMENTS = 32
"""A filter may drop most of them."""


def _changed_parts(dataset: Any, changes: Sequence[Change]) -> tuple[Any, Any, bool]:
    """Cut out what the changes touch, as written and as changed, to read the same few elements.

    Returns True as well if two passes over the part itself may differ. Where it reads from several
    datasets, or from none, everything upstream belongs to it.
    """
    before, after = without_caches(dataset), without_caches(dataset)
    apply(after, changes)
    kept = after.kept()
    tops = _tops(before, after, kept)
    cuts = [_cut(top, kept) for top in tops]
    sources = {id(source): source for _, read in cuts for source in read}
    if len(sources) != 1 or not all(read for _, read in cuts):
        sources, cuts = {}, [_cut(top, set()) for top in tops]
    (own, _), (changed, _) = cuts
    nodes = own + changed
    for node in nodes:
        if _batch_size(node) > _ROWS_OF_A_CHECK:
            node.parameters["batch_size"] = _ROWS_OF_A_CHECK
    # Half a batch at the end shows what happens to a remainder.
    wanted = max(_FEWEST_ELEMENTS, prod(map(_batch_size, own)) * 5 // 2)
    fixed: dict[int, Any] = {}
    for key, source in sources.items():
        elements = first_elements(source, wanted, READING_LIMIT_S).elements
        if not elements:
            raise NotReplayableError("The pipeline hands out no elements to check.")
        fixed[key] = dataset_of(elements, source.element_spec)
    made = [built(graph, top, fixed) for graph, top in zip((before, after), tops, strict=True)]
    return made[0], made[1], any(map(is_random, nodes))


def _cut(top: Node, kept: set[int]) -> tuple[list[Node], list[Any]]:
    """Return the nodes up to `kept` datasets, and those of them that the nodes read from."""
    reached = nodes_up_to(top, lambda node: id(node.dataset) in kept)
    nodes = [node for node in reached if id(node.dataset) not in kept]
    return nodes, [node.dataset for node in reached if id(node.dataset) in kept]


def _tops(before: Graph, after: Graph, kept: set[int]) -> tuple[Node, Node]:
    """Return the last nodes of the changed part: behind them both forms are the same."""
    (old,), (new,) = before.end.inputs, after.end.inputs
    while (
        new.dataset is old.dataset
        and not new.changed
        and id(new.dataset) not in kept
        and len(new.inputs) == len(old.inputs) == 1
    ):
        old, new = old.inputs[0], new.inputs[0]
    return old, new


def _batch_size(node: Node) -> int:
    """Return the rows that it makes one of; 1 where it makes no batches."""
    written = node.operation.parameters if node.operation is not None else {}
    size = {**written, **node.parameters}.get("batch_size")
    return size if isinstance(size, int) and size > 0 else 1


READING_LIMIT_S = 5.0
"""No check reads on for longer; what was read by then is compared."""
_MOST_ELEMENTS = 64


def verify(dataset: Any, changes: Sequence[Change], check: Check) -> int | None:
    """Run the changed part of the pipeline and the same part as written on the same elements.

    The elements are taken once, from where both are still the same, so that a shuffle upstream
    does not matter. Where the part itself is random, only structure, types and ranks are compared.
    Returns how many elements were the same in two passes, where that is checked, and raises
    NotReplayableError where the batches differ or can't be checked.
    """
    if touched(changes) <= {"model"}:
        return None
    refuse_to_disturb(Graph(dataset))
    if check == "repeats":
        return _same_in_two_passes(dataset, changes)
    # Filling a cache would cost more than the check.
    written = [as_written(change) for change in changes]
    before, after, random = _changed_parts(dataset, written)
    expected, found = _read(before), _read(after)
    by_value = check == "equal" and not random
    difference = _count_difference(expected, found) if by_value else None
    if difference is None:
        difference = difference_of(expected.elements, found.elements, values=by_value)
        unlike = difference is not None and by_value
        if unlike and difference_of(expected.elements, _read(before).elements, values=True):
            if any(isinstance(change, Move) for change in changes):
                raise NotReplayableError(
                    "The pipeline hands out other values every time, so it can't be checked "
                    "whether moving an operation changes them."
                )
            difference = difference_of(expected.elements, found.elements, values=False)
    if difference is not None:
        raise NotReplayableError(f"{RESULTS_DIFFER[0]}: {difference}.")
    return None


_PASSES_S = 1.0
"""Each of two passes that are compared is read for so long."""
_MOST_IN_PASSES = 5_000
_IN_ONE_ORDER: dict[str, dict[str, Scalar]] = {
    "shuffle": {"reshuffle_each_iteration": False},
    "list_files": {"shuffle": False},
}


def _same_in_two_passes(dataset: Any, changes: Sequence[Change]) -> int:
    """Count the elements in front of an added cache that are the same in two passes."""
    place = next(change.after for change in changes if adds_cache(change))
    graph = without_caches(dataset)
    apply(graph, [change for change in changes if not adds_cache(change)])
    above = nodes_up_to(graph.node(place))
    behind = [node for node in graph.nodes() if node not in above]
    if any(one.kind == "shuffle" for node in behind for one in node.operations):
        # Both passes are in one order, which a cache keeps: what is behind it mixes its elements.
        for node in above:
            if node.operation is not None and reorders(node.operation):
                order = _IN_ONE_ORDER.get(node.operation.kind, {"deterministic": True})
                node.parameters.update(order)
    part = built(graph, graph.node(place))
    first, second = (first_elements(part, _MOST_IN_PASSES, _PASSES_S) for _ in range(2))
    difference = _count_difference(first, second)
    difference = difference_of(first.elements, second.elements, values=True) or difference
    if difference is not None:
        raise NotReplayableError(
            f"{PASSES_DIFFER}: {difference}. A cache would repeat those of the first epoch."
        )
    return min(len(first.elements), len(second.elements))


def _read(dataset: Any) -> Reading:
    return first_elements(dataset, _MOST_ELEMENTS, READING_LIMIT_S)


def _count_difference(expected: Reading, found: Reading) -> str | None:
    before, after = len(expected.elements), len(found.elements)
    if (expected.exhausted and before < after) or (found.exhausted and after < before):
        return f"there are {after} where there were {before}"
    return None
