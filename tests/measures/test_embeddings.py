"""Embedding tables: memory, ids, and the time of work on all of a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.measures.measured_loop import StepCompute, describe_embeddings
from pipediag.session.loops import Embedding
from pipediag.session.recorded_loops import RecordedTableUse, RecordedVariable
from pipediag.trace.events import CompiledWork
from pipediag.trace.operations import ComputeTimes
from tests.recordings import make_recorded_loop
from tests.rules.sessions import make_ids

TABLE = RecordedVariable("words", 1000, 64, "float32", trainable=True)
USE = RecordedTableUse(
    variable="words/embeddings",
    lookups=1,
    gradient="sparse",
    writes_whole=False,
    whole_table_operations={},
    temporary_bytes=0,
    slot_bytes=4000,
)
IDS = make_ids(unique_per_step=60.4)


def described(**changes: object) -> Embedding:
    (row,) = describe_embeddings([replace(TABLE, **{"use": USE, "ids": IDS, **changes})])  # type: ignore[arg-type]
    return row


def test_tables_in_bytes_the_largest_first() -> None:
    rows = describe_embeddings(
        [
            RecordedVariable("small", 100, 8, "float32", trainable=True),
            RecordedVariable("large", 1000, 64, "bfloat16", trainable=False),
        ]
    )
    assert [(row.layer, row.table_bytes) for row in rows] == [("large", 128_000), ("small", 3200)]
    assert not rows[0].trainable
    assert rows[0].gradient is None
    assert rows[0].missing is not None
    assert rows[0].ids_missing is not None


@pytest.mark.parametrize(
    ("use", "update"),
    [
        ({"writes_whole": True}, "dense"),
        ({"whole_table_operations": {"IsNan": 1}}, "dense"),
        ({"gradient": None, "writes_whole": True}, None),
    ],
)
def test_what_passes_over_the_whole_table_is_dense(
    use: dict[str, object], update: str | None
) -> None:
    row = described(use=replace(USE, **use))  # type: ignore[arg-type]

    assert row.update == update
    assert (row.missing is None) is (update is not None)


def test_rows_that_a_step_touches() -> None:
    assert described().rows_touched_per_step == 60
    assert described(ids=replace(IDS, incomplete="Some are drawn.")).rows_touched_per_step is None


ROWS, SCALED, LOGITS = "embedding/GatherV2:GatherV2", "adam/Mul:Mul", "dense/MatMul:MatMul"
UPDATE = ["adam/Mul", "while/adam/Sub"]


def fused(*ends_in: str, holds: tuple[str, ...] = ()) -> CompiledWork:
    return CompiledWork(frozenset(ends_in), frozenset((*ends_in, *holds)))


@pytest.mark.parametrize(
    ("works", "kept", "ms"),
    [
        ({SCALED: 40.0, "while/body/_3/adam/Sub:Sub": 20.0, LOGITS: 40.0}, True, 30.0),
        # A step that passes over a table can't take no time in it: its names are not known.
        ({LOGITS: 100.0}, True, None),
        # What is fused belongs to what its results are of.
        ({fused(SCALED, holds=("gradients/Neg:Neg",)): 60.0, LOGITS: 40.0}, True, 30.0),
        ({fused(SCALED, LOGITS): 10.0, SCALED: 90.0}, True, None),
        ({fused(LOGITS, holds=(SCALED,)): 10.0, SCALED: 90.0}, True, None),
        ({fused(LOGITS, holds=(SCALED,)): 0.5, SCALED: 99.5}, True, 49.75),
        ({SCALED: 60.0}, False, None),
    ],
)
def test_the_time_of_some_operations_of_a_step(
    works: dict[str | CompiledWork, float], kept: bool, ms: float | None
) -> None:
    """In a step with a compute of 50 ms."""
    named = {work: ns for work, ns in works.items() if isinstance(work, str)}
    compiled = {work: ns for work, ns in works.items() if isinstance(work, CompiledWork)}
    times = ComputeTimes(100, named, 0.0 if kept else 40.0, compiled)
    found = StepCompute(times, 50.0).ms_of(UPDATE)
    assert found == (None if ms is None else pytest.approx(ms))


def test_tables_of_the_loop_have_their_times() -> None:
    compute = StepCompute(ComputeTimes(100, {SCALED: 60.0, ROWS: 40.0}, 0.0), 50.0)
    use = replace(USE, pass_operations=UPDATE, copy_operations=["embedding/ReadVariableOp"])
    tables = [
        replace(TABLE, layer="of another loop", use=use, loop_id="loop_7", rows=10),
        replace(TABLE, use=use, loop_id="loop_0"),
    ]
    own, other = describe_embeddings(tables, make_recorded_loop(id="loop_0"), compute)
    assert (own.passes_ms, own.copy_ms) == (30.0, None)
    assert (other.passes_ms, other.copy_ms) == (None, None)


def test_tables_that_tensorflow_names_alike_are_named_by_their_path() -> None:
    (row,) = describe_embeddings([replace(TABLE, use=USE, path="model/words/embeddings")])
    assert row.variable == "model/words/embeddings"
