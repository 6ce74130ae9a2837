"""Loops that evaluate, and what they read, to be asked about."""

from __future__ import annotations

from typing import Any

from pipediag.session.loops import Evaluation, Loop
from pipediag.session.pipeline import Operation, Pipeline
from tests.factories import make_loop
from tests.records import make_function, make_operation, make_pipeline

WAITING = Evaluation(steps=32, step_ms=10.0, consumer_ms=2.0)
"""80 % of a step."""


def written(
    id: str, kind: str, line: int, parent: str | None = None, **overrides: Any
) -> Operation:
    """An operation of a pipeline whose costs were not measured."""
    values = {"elements": None, "self_ms_per_step": None, "bytes_per_element": None}
    parents = [] if parent is None else [parent]
    return make_operation(id, kind, line=line, parent_ids=parents, **{**values, **overrides})


def decoding(**function: Any) -> list[Operation]:
    """from_tensor_slices -> map -> batch(8), of 80 images of a kilobyte."""
    size = {"cardinality": 80, "element_bytes": 1024}
    batches = {"cardinality": 10, "element_bytes": 8 * 1024}
    decode = make_function(**function)
    return [
        written("v1", "from_tensor_slices", 30, **size),
        written("v2", "map", 31, "v1", function=decode, **size),
        written("v3", "batch", 32, "v2", parameters={"batch_size": 8}, **batches),
    ]


def ending(*ops: Operation, before: list[Operation] | None = None) -> Pipeline:
    """The decoding pipeline, or other operations, with more behind them."""
    return make_pipeline(ops=[*(decoding() if before is None else before), *ops])


def validation(pipeline: Pipeline | None = None, **overrides: Any) -> Loop:
    """A validation in the `fit` of the factories, which reads that pipeline."""
    values = {
        "id": "loop_1",
        "role": "validation",
        "diagnosed": False,
        "batch_size": 8,
        "pipeline": pipeline or ending(),
        "evaluation": WAITING,
    }
    return make_loop(**{**values, **overrides})
