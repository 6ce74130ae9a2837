"""Code for what a library's helper makes, where an edit changes it: another call of the helper."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.facts.helper_made import (
    FROM_FILES_OR_ARRAYS,
    READ_CONFIG,
    TENSORFLOW_DATASETS,
    argument_of,
)
from pipediag.session.edits import AUTOTUNE, Change, Insert, SetParameters
from pipediag.session.pipeline import Operation


def called_otherwise(ops: Sequence[Operation], changes: Sequence[Change]) -> list[str] | None:
    """The lines that do it; None where the helper's call can't be all that changes."""
    by_id = {op.id: op for op in ops}
    for change in changes:
        op = by_id.get(change.after) if isinstance(change, Insert) else None
        if isinstance(change, Insert) and op is not None and change.kind == "cache":
            if op.helper in TENSORFLOW_DATASETS and len(changes) == 1:
                return [f"{op.helper}(...){_cache(change)}"]
            return _cached(ops, op, change) if op.helper in FROM_FILES_OR_ARRAYS else None
    lines = [_with_arguments(by_id, change) for change in changes]
    return None if None in lines else [line for line in lines if line is not None]


def _cached(ops: Sequence[Operation], op: Operation, change: Insert) -> list[str]:
    """The elements are kept as single examples, and mixed and batched behind that."""
    made = [one for one in ops if (one.helper, one.line) == (op.helper, op.line)]
    shuffled = any(one.kind == "shuffle" for one in made)
    sizes = (one.parameters.get("batch_size") for one in made)
    size = next((size for size in sizes if isinstance(size, int)), None)
    calls = [_cache(change)]
    calls += [".shuffle(dataset.cardinality())"] if shuffled else []
    calls += [f".batch({size})"] if size is not None else []
    return [
        f"dataset = keras.utils.{op.helper}(..., batch_size=None, shuffle=False)",
        f"dataset = dataset{''.join(calls)}.prefetch(tf.data.AUTOTUNE)",
    ]


def _cache(change: Insert) -> str:
    return ".cache(path)" if change.parameters.get("on_disk") else ".cache()"


def _with_arguments(by_id: dict[str, Operation], change: Change) -> str | None:
    op = by_id.get(change.op_id) if isinstance(change, SetParameters) else None
    if not isinstance(change, SetParameters) or op is None or op.helper is None:
        return None
    given = [
        f"{name}={'tf.data.AUTOTUNE' if value == AUTOTUNE else repr(value)}"
        for parameter, value in change.parameters.items()
        if (name := argument_of(op, parameter)) is not None
    ]
    configured = [one.removeprefix(READ_CONFIG) for one in given if one.startswith(READ_CONFIG)]
    given = [one for one in given if not one.startswith(READ_CONFIG)]
    if configured:
        given.append(f"read_config=tfds.ReadConfig({', '.join(configured)})")
    return f"{op.helper}(..., {', '.join(given)})" if given else None
