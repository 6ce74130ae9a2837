"""Embedding tables: memory, ids, and their cost in a step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.measures.embeddings import describe_embeddings, measure_embedding_cost
from pipediag.measures.recorded_windows import Missing
from pipediag.session.embeddings import Embedding, EmbeddingCost
from pipediag.session.recorded_loops import RecordedTableUse, RecordedVariable, Softmax
from pipediag.session.recording import Recording
from pipediag.trace.events import CompiledWork
from pipediag.trace.operations import ComputeTimes
from pipediag.vocabulary import TablePart
from tests.measures.traces import make_trace
from tests.recordings import make_recorded_loop, make_recording
from tests.records import make_breakdown
from tests.rules.sessions import make_ids

TABLE = RecordedVariable("words", 1000, 64, "float32", trainable=True, slots=2)
USE = RecordedTableUse(
    variable="words/embeddings",
    device="CPU:0",
    lookups=1,
    copied_on_lookup=True,
    gradient="sparse",
    gradient_spread=False,
    writes_whole=False,
    whole_table_operations={},
    temporary_bytes=0,
    slots=1,
    slot_bytes=4000,
)
IDS = make_ids(unique_per_step=60.4)


def described(**changes: object) -> Embedding:
    (row,) = describe_embeddings([replace(TABLE, **{"use": USE, "ids": IDS, **changes})])  # type: ignore[arg-type]
    return row


def test_tables_and_slots_in_bytes_the_largest_first() -> None:
    rows = describe_embeddings(
        [
            RecordedVariable("small", 100, 8, "float32", trainable=True, slots=2),
            RecordedVariable("large", 1000, 64, "bfloat16", trainable=False, slots=0),
        ]
    )
    assert [(row.layer, row.table_bytes, row.slot_bytes) for row in rows] == [
        ("large", 128_000, 0),
        ("small", 3200, 6400),
    ]
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


PARTS: dict[TablePart, list[str]] = {
    "lookup": ["embedding/GatherV2"],
    "copy": ["embedding/GatherV2/ReadVariableOp"],
    "update": ["adam/Mul", "while/adam/Sub"],
}
BREAKDOWN = make_breakdown(device_compute=50.0)
COMPUTE_MS = BREAKDOWN["device_compute"].ms


def recording(*tables: RecordedVariable, vocabulary: list[str] | None = None) -> Recording:
    loop = make_recorded_loop(
        vocabulary_operations=vocabulary or [], metric_operations=["in_top_k/InTopKV2"]
    )
    return make_recording(loops=[loop], variables=list(tables))


def table(layer: str = "words", **parts: list[str]) -> RecordedVariable:
    use = replace(USE, variable=f"{layer}/embeddings", operations=parts or PARTS)
    return replace(TABLE, layer=layer, use=use)


def cost(recorded: Recording, times: ComputeTimes | None) -> EmbeddingCost | Missing:
    trace = make_trace(compute=times)
    return measure_embedding_cost(recorded, recorded.loops[0], trace, None, BREAKDOWN)


def parts(found: EmbeddingCost | Missing) -> list[tuple[str, str | None, float]]:
    return [(one.part, one.layer, one.percent) for one in found.parts]


def test_parts_of_two_tables_the_largest_first() -> None:
    recorded = recording(
        table(), table("users", update=["adam/Mul_1"]), vocabulary=["logits/MatMul"]
    )
    found = cost(
        recorded,
        ComputeTimes(
            1000,
            1500,
            {
                "embedding/GatherV2:GatherV2": 50.0,
                "embedding/GatherV2/ReadVariableOp:ReadVariableOp": 100.0,
                "adam/Mul:Mul": 400.0,
                "adam/Mul_1:Mul": 200.0,
                "logits/MatMul:_FusedMatMul": 150.0,
                "dense/MatMul:MatMul": 80.0,
                "in_top_k/InTopKV2:InTopKV2": 20.0,
            },
            0.0,
        ),
    )
    assert parts(found) == [
        ("update", "words", 40.0),
        ("update", "users", 20.0),
        ("vocabulary", None, 15.0),
        ("copy", "words", 10.0),
        ("rest", None, 8.0),
        ("lookup", "words", 5.0),
        ("metrics", None, 2.0),
    ]
    assert found.parts[0].ms == pytest.approx(0.4 * COMPUTE_MS)
    assert found.parts[0].variable == "words/embeddings"
    assert (found.compute_ms, found.steps, found.overlap, found.notes) == (COMPUTE_MS, 10, 1.5, [])


def test_the_update_of_output_weights_bears_their_name() -> None:
    softmax = Softmax("dense/kernel", 5000, 8, "sparse", update_operations=["adam/Mul_2"])
    loop = make_recorded_loop(vocabulary_operations=["logits/MatMul"], softmaxes=[softmax])
    recorded = make_recording(loops=[loop], variables=[table()])
    found = cost(
        recorded,
        ComputeTimes(100, 100, {"logits/MatMul:MatMul": 60.0, "adam/Mul_2:Mul": 40.0}, 0.0),
    )
    assert parts(found) == [("vocabulary", None, 60.0), ("update", "dense/kernel", 40.0)]


def fused(*ends_in: str, holds: tuple[str, ...] = ()) -> CompiledWork:
    return CompiledWork(frozenset(ends_in), frozenset((*ends_in, *holds)))


ROWS, SCALED, LOGITS = "embedding/GatherV2:GatherV2", "adam/Mul:Mul", "dense/MatMul:MatMul"


@pytest.mark.parametrize(
    ("work", "part"),
    [
        (fused(ROWS), ("lookup", "words")),
        # What is fused belongs to what it ends in, where that is a table's.
        (fused(SCALED, holds=("gradients/Neg:Neg",)), ("update", "words")),
        (fused(LOGITS, "loss/Sum:Sum", holds=("loss/Square:Square",)), ("rest", None)),
        (fused("adam/Mul:Mul", "while/adam/Sub:Sub"), ("update", "words")),
    ],
)
def test_what_xla_fused_is_the_part_that_its_result_is_of(
    work: CompiledWork, part: tuple[str, str | None]
) -> None:
    found = cost(recording(table()), ComputeTimes(100, 100, {}, 0.0, {work: 100.0}))

    assert parts(found) == [(*part, 100.0)]
    assert (len(found.fused), len(found.notes)) == (0, 1)


@pytest.mark.parametrize(
    "work", [fused("mean/Sum:Sum", holds=(ROWS,)), fused(ROWS, "mean/Sum:Sum")]
)
def test_a_lookup_that_is_fused_with_what_uses_its_rows_is_not_told(work: CompiledWork) -> None:
    found = cost(
        recording(table()), ComputeTimes(400, 400, {}, 0.0, {work: 100.0, fused(SCALED): 300})
    )

    assert parts(found) == [("update", "words", 75.0), ("not_told", None, 25.0)]
    [together] = found.fused
    assert [(one.part, one.layer) for one in together.parts] == [
        ("lookup", "words"),
        ("rest", None),
    ]
    assert together.percent == pytest.approx(25.0)
    assert together.ms == pytest.approx(COMPUTE_MS / 4)


def test_tables_that_tensorflow_names_alike_are_named_by_their_path() -> None:
    """The parts of a step's time have that name too, and are found by it."""
    (row,) = describe_embeddings([replace(TABLE, use=USE, path="model/words/embeddings")])
    assert row.variable == "model/words/embeddings"
