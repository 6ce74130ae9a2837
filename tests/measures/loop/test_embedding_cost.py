from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.measures.embeddings import has_parts, measure_embedding_cost
from pipediag.measures.recorded_windows import Missing
from pipediag.session.embedding_cost import EmbeddingCost
from pipediag.session.recorded_tables import RecordedSoftmax, RecordedVariable
from pipediag.session.recording import Recording
from pipediag.trace.events import CompiledWork
from pipediag.trace.host.compute import ComputeTimes
from pipediag.vocabulary import TablePart
from tests.measures.loop.test_embeddings import TABLE, USE
from tests.measures.traces import make_trace
from tests.recordings import make_recorded_loop, make_recording
from tests.records import make_breakdown

PARTS: dict[TablePart, list[str]] = {
    "lookup": ["embedding/GatherV2"],
    "copy": ["embedding/GatherV2/ReadVariableOp"],
    "update": ["adam/Mul", "while/adam/Sub"],
}
BREAKDOWN = make_breakdown(device_compute=50.0)
COMPUTE_MS = BREAKDOWN["device_compute"].ms


def recording(*tables: RecordedVariable, vocabulary: list[str] | None = None) -> Recording:
    loop = make_recorded_loop(vocabulary_operations=vocabulary or [])
    return make_recording(loops=[loop], variables=list(tables))


def table(layer: str = "words", **parts: list[str]) -> RecordedVariable:
    use = replace(USE, variable=f"{layer}/embeddings", operations=parts or PARTS)
    return replace(TABLE, layer=layer, use=use)


def cost(recorded: Recording, times: ComputeTimes | None) -> EmbeddingCost | Missing:
    trace = make_trace(compute=times)
    return measure_embedding_cost(recorded, recorded.loops[0], trace, None, BREAKDOWN)


def parts(found: EmbeddingCost | Missing) -> list[tuple[str, str | None, float]]:
    assert isinstance(found, EmbeddingCost)
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
                "dense/MatMul:MatMul": 100.0,
            },
            0.0,
        ),
    )
    assert parts(found) == [
        ("update", "words", 40.0),
        ("update", "users", 20.0),
        ("vocabulary", None, 15.0),
        ("copy", "words", 10.0),
        ("rest", None, 10.0),
        ("lookup", "words", 5.0),
    ]
    assert isinstance(found, EmbeddingCost)
    assert found.parts[0].ms == pytest.approx(0.4 * COMPUTE_MS)
    assert found.parts[0].variable == "words/embeddings"
    assert (found.compute_ms, found.steps, found.overlap, found.notes) == (COMPUTE_MS, 10, 1.5, [])


def test_the_update_of_output_weights_bears_their_name() -> None:
    softmax = RecordedSoftmax(
        "dense/kernel", 5000, 8, 1, "sparse", None, False, update_operations=["adam/Mul_2"]
    )
    loop = make_recorded_loop(vocabulary_operations=["logits/MatMul"], softmaxes=[softmax])
    recorded = make_recording(loops=[loop], variables=[table()])
    found = cost(
        recorded,
        ComputeTimes(100, 100, {"logits/MatMul:MatMul": 60.0, "adam/Mul_2:Mul": 40.0}, 0.0),
    )
    assert parts(found) == [("vocabulary", None, 60.0), ("update", "dense/kernel", 40.0)]


@given(st.lists(st.floats(0.0, 1e9), min_size=4, max_size=4), st.floats(0.0, 1e9))
def test_the_parts_add_up_to_the_compute_of_the_step(named: list[float], compiled: float) -> None:
    names = ["embedding/GatherV2:GatherV2", "adam/Mul:Mul", "x/Sub:Sub", "y/MatMul:MatMul"]
    total = round(sum(named) + compiled)
    if not total:
        return
    found = cost(
        recording(table()),
        ComputeTimes(total, total, dict(zip(names, named, strict=True)), compiled),
    )
    assert isinstance(found, EmbeddingCost)
    assert sum(one.percent for one in found.parts) == pytest.approx(100.0)
    assert sum(one.ms for one in found.parts) == pytest.approx(COMPUTE_MS)


def test_operations_in_the_body_of_a_loop_bear_its_round_in_their_names() -> None:
    found = cost(
        recording(table()), ComputeTimes(10, 10, {"while/body/_12/adam/Sub:Sub": 10.0}, 0.0)
    )
    assert parts(found) == [("update", "words", 100.0)]


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
    assert isinstance(found, EmbeddingCost)
    assert (len(found.fused), len(found.notes)) == (0, 1)


@pytest.mark.parametrize(
    "work", [fused("mean/Sum:Sum", holds=(ROWS,)), fused(ROWS, "mean/Sum:Sum")]
)
def test_a_lookup_that_is_fused_with_what_uses_its_rows_is_not_told(work: CompiledWork) -> None:
    found = cost(
        recording(table()), ComputeTimes(400, 400, {}, 0.0, {work: 100.0, fused(SCALED): 300})
    )

    assert parts(found) == [("update", "words", 75.0), ("not_told", None, 25.0)]
    assert isinstance(found, EmbeddingCost)
    [together] = found.fused
    assert [(one.part, one.layer) for one in together.parts] == [
        ("lookup", "words"),
        ("rest", None),
    ]
    assert together.percent == pytest.approx(25.0)
    assert together.ms == pytest.approx(COMPUTE_MS / 4)


def test_what_no_program_tells_is_not_told_and_no_time_without_a_name_is_lost() -> None:
    found = cost(recording(table()), ComputeTimes(1000, 1000, {"adam/Mul:Mul": 100.0}, 600.0))

    assert parts(found) == [("not_told", None, 90.0), ("update", "words", 10.0)]
    assert isinstance(found, EmbeddingCost)
    assert "does not keep every program" in found.notes[0]


def test_an_operation_of_the_same_end_is_another() -> None:
    found = cost(recording(table()), ComputeTimes(10, 10, {"other/adam/Mul:Mul": 10.0}, 0.0))
    assert parts(found) == [("rest", None, 100.0)]


@pytest.mark.parametrize(
    ("recorded", "reason"),
    [
        (recording(), "look up no embedding table"),
        (recording(replace(TABLE, use=None)), "graph of the step was not read"),
        (recording(replace(TABLE, use=USE)), "have no names in a profile"),
        (recording(replace(table(), loop_id="another")), "graph of the step was not read"),
    ],
)
def test_without_parts_the_reason(recorded: Recording, reason: str) -> None:
    found = cost(recorded, ComputeTimes(10, 10, {"Mul:Mul": 10.0}, 0.0))

    assert isinstance(found, Missing)
    assert reason in found.reason
    assert not has_parts(recorded, recorded.loops[0])


def test_without_a_profile_or_a_breakdown_their_reasons() -> None:
    recorded = recording(table())
    loop = recorded.loops[0]
    trace = make_trace(compute=ComputeTimes(0, 0, {}, 0.0))

    def of(*rest: object) -> str:
        found = measure_embedding_cost(recorded, loop, *rest)  # type: ignore[arg-type]
        assert isinstance(found, Missing)
        return found.reason

    assert of(None, "No step was profiled.", BREAKDOWN) == "No step was profiled."
    assert of(make_trace(steps=None, missing={"steps": "No steps."}), None, BREAKDOWN) == (
        "No steps."
    )
    assert "no compute" in of(trace, None, BREAKDOWN)
    told = make_trace(compute=ComputeTimes(10, 10, {"Mul:Mul": 10.0}, 0.0))
    assert of(told, None, Missing("Too few.")) == "Too few."
