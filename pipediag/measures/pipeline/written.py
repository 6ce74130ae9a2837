"""The part of the recorded plan that feeds one loop, in the order of the data."""

from __future__ import annotations

from pipediag.session.recorded_operations import RecordedOperation


def plan_of(operations: list[RecordedOperation], root_id: str | None) -> list[RecordedOperation]:
    """Every operation whose elements reach `root_id`, sources first; empty where it is unknown.

    Datasets that the function of a `flat_map` or an `interleave` makes stand before that operation.
    A function that was traced again recorded them again: the last tracing is the one that runs.
    """
    by_id = {operation.id: operation for operation in operations}
    nested = _nested(operations)
    ordered: dict[str, RecordedOperation] = {}
    seen: set[str] = set()
    # Not by recursion: a chain of datasets can be longer than Python's stack.
    waiting = [] if root_id is None else [(root_id, False)]
    while waiting:
        op_id, sources_stand = waiting.pop()
        operation = by_id.get(op_id)
        if operation is None:
            continue
        if sources_stand:
            ordered[op_id] = operation
        elif op_id not in seen:
            seen.add(op_id)
            sources = (*operation.parent_ids, *nested.get(op_id, ()))
            waiting += [(op_id, True), *((source, False) for source in reversed(sources))]
    return list(ordered.values())


def _nested(operations: list[RecordedOperation]) -> dict[str, list[str]]:
    """Ids of the operations made in each operation's function, without those of older tracings."""
    latest: dict[str, dict[tuple[str, str | None, int | None], str]] = {}
    for operation in operations:
        if operation.inside_function_of is not None:
            place = (operation.kind, operation.file, operation.line)
            latest.setdefault(operation.inside_function_of, {})[place] = operation.id
    return {outer: list(places.values()) for outer, places in latest.items()}
