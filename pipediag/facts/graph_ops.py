"""What a mapped function does, by the types of its graph's operations."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag import tensorflow_names
from pipediag.facts.pipeline import call_name, upstream_of
from pipediag.session.pipeline import Operation, OperationFunction
from pipediag.tensorflow_names import (
    CHANGES_TABLES,
    DRAWING_KINDS,
    LOOKUP,
    PYTHON_OPERATIONS,
    VARIABLES,
)


def uses(function: OperationFunction | None, family: frozenset[str]) -> list[str]:
    """The graph operations of this family in the function, sorted."""
    return sorted(family & function.graph_ops.keys()) if function else []


def draws_random(function: OperationFunction | None) -> bool:
    """Whether two of its calls on one element may differ."""
    return function is not None and tensorflow_names.draws_random(function.graph_ops)


def only_looks_up(function: OperationFunction | None) -> bool:
    """Whether it looks up in tables, and changes none nor anything else, nor draws.

    TensorFlow calls it stateful all the same; its results hang on its element alone, so that it may
    be called in another order, for several at once and for a whole batch.
    """
    changes = PYTHON_OPERATIONS | VARIABLES | CHANGES_TABLES
    return bool(uses(function, LOOKUP)) and not (uses(function, changes) or draws_random(function))


def differs_by_pass(op: Operation) -> bool:
    """Whether two passes may give other elements here, as it or its function draws them."""
    return op.kind in DRAWING_KINDS or draws_random(op.function)


def calls_python(op: Operation) -> bool:
    """Whether elements pass through Python in this operation, not only while it is traced."""
    return bool(uses(op.function, PYTHON_OPERATIONS))


def changes_something(op: Operation) -> bool:
    """Whether its Python visibly changes something, so that it is no function of its element."""
    return op.function is not None and op.function.side_effect is not None


def condition_of_cache(ops: Sequence[Operation], op: Operation, pass_: str) -> str | None:
    """Return what must hold of the Python above a cache behind `op`; None where there is none.

    `pass_` is what reads the data once: an epoch, or an evaluation.
    """
    above = [op, *upstream_of(ops, op)]
    ids = {one.id for one in above}
    inner = [one for one in ops if one.inside_function_of in ids and one.id not in ids]
    python = [one for one in (*above, *inner) if one.kind == "from_generator" or calls_python(one)]
    if not python:
        return None
    if any(one.kind == "from_generator" for one in python):
        return f"if the generator yields the same data in every {pass_}"
    return f"if the Python in {call_name(python[0])} returns the same in every {pass_}"
