"""The loops of the script, and which of them is diagnosed."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.loops import cache_filled_meanwhile, chosen_loop, loop_rows
from pipediag.measures.steps import Missing
from pipediag.session.ledger import Run
from pipediag.session.recorded_loops import Evaluation, NestedCall, RecordedBoundary, RecordedLoop
from pipediag.session.recording import RecordedOperation, Recording
from tests.factories import make_part, make_run
from tests.recordings import (
    make_block,
    make_node,
    make_recorded_loop,
    make_recorded_operation,
    make_recording,
    make_snapshot,
    make_window,
)
from tests.records import MS


def chain(*kinds: str) -> list[RecordedOperation]:
    """Operations that read one from the other, each with its kind as its id."""
    return [
        make_recorded_operation(kind, kind, parent_ids=[kinds[number - 1]] if number else [])
        for number, kind in enumerate(kinds)
    ]


CACHED = chain("from_tensor_slices", "repeat", "cache", "batch")


def filled(
    operations: list[RecordedOperation] = CACHED, snapshots: Any = (), **loop: Any
) -> str | None:
    last = operations[-1].id
    own = make_recorded_loop(**{"root_op_id": last, "keras": None, "planned_rounds": 5, **loop})
    recording = make_recording(operations=operations, loops=[own], snapshots=list(snapshots))
    op = cache_filled_meanwhile(recording, own)
    return op.id if op is not None else None


def ended(at_ms: int) -> dict[str, Any]:
    boundary = RecordedBoundary(start_ns=at_ms * MS, asked_ns=at_ms * MS, handed_ns=None)
    return {"boundaries": 1, "epoch_boundaries": [boundary]}


def test_steps_before_the_first_epoch_has_ended_fill_its_cache() -> None:
    assert filled() == "cache"
    assert filled(planned_rounds=None) == "cache"
    assert filled(**ended(4390)) == "cache"
    assert filled(chain("range", "cache", "batch")) == "cache"
    keras = make_recorded_loop().keras
    assert filled(keras=keras, planned_rounds=None) == "cache"


NOT_FILLED: dict[str, dict[str, Any]] = {
    "one epoch": {"planned_rounds": 1},
    "no cache": {"operations": chain("range", "map", "batch")},
    "its ends are not seen": {"operations": chain("range", "cache", "repeat", "batch")},
    "no training": {"role": "evaluation"},
    "an epoch ended": ended(4389),
    "nobody knows when": {"boundaries": 1},
    "no tf.data": {"root_op_id": None},
    "not measured": {"id": "another"},
}


@pytest.mark.parametrize("there", NOT_FILLED.values(), ids=NOT_FILLED)
def test_of_others_that_is_not_said(there: dict[str, Any]) -> None:
    assert filled(**there) is None


def test_a_cache_that_was_full_is_not_filled() -> None:
    """As from an earlier run, in a file; while it fills, it has inputs."""
    full = [make_node(1, "Root", [2]), make_node(2, "MemoryCacheImpl", [])]
    fills = [make_node(1, "Root", [2]), make_node(2, "MemoryCacheImpl", [3]), make_node(3, "X", [])]

    assert filled(snapshots=[make_snapshot(10, nodes=fills, output_id=1)]) == "cache"
    assert filled(snapshots=[make_snapshot(10, nodes=full, output_id=1)]) is None


def windows(loop_id: str, step_ms: float) -> list[Any]:
    return [make_window("baseline", make_block(10, step_ms), loop_id=loop_id)]


UNKNOWN = Missing("No ledger.")


def of_loops(**seconds: float) -> Run:
    rows = [make_part("steps", one, 100.0, loop_id=loop) for loop, one in seconds.items()]
    return make_run(parts=rows)


def test_the_most_expensive_training_loop_is_diagnosed() -> None:
    """By the ledger, which has the whole of a loop of which little was seen."""
    cheap, dear = make_recorded_loop(), make_recorded_loop(id="loop2")
    recording = make_recording(
        loops=[cheap, dear], windows=[*windows("loop1", 2.0), *windows("loop2", 8.0)]
    )
    run = of_loops(loop1=20.0, loop2=75.0)
    loop, [note] = chosen_loop(recording, run, None)
    assert loop is dear
    assert "75 s" in note
    rows = loop_rows(recording, run, dear)
    assert [(row.diagnosed, row.projected_s) for row in rows] == [(False, 20.0), (True, 75.0)]
    of_an_epoch = run.but(scope="epoch")
    assert loop_rows(recording, of_an_epoch, dear)[0].projected_s is None


def test_a_measured_loop_goes_before_a_dear_one_that_was_not() -> None:
    measured, cut_off = make_recorded_loop(), make_recorded_loop(id="loop2")
    recording = make_recording(
        loops=[measured, cut_off],
        windows=[*windows("loop1", 2.0), make_window("warmup", loop_id="loop2")],
    )
    assert chosen_loop(recording, of_loops(loop1=1.0, loop2=90.0), None)[0] is measured


def test_a_loop_that_evaluates_has_its_pipeline_as_written_and_a_look_at_its_steps() -> None:
    training = make_recorded_loop()
    seen = Evaluation(32, 2.0, 1.5)
    validation = make_recorded_loop(id="loop2", role="validation", evaluation=seen)
    recording = make_recording(loops=[training, validation])
    rows = loop_rows(recording, UNKNOWN, training)

    assert rows[0].root_op_id == training.root_op_id
    assert (rows[0].pipeline, rows[0].evaluation) == (None, None)
    pipeline = rows[1].pipeline
    assert [op.id for op in pipeline.ops][-1] == rows[1].root_op_id == training.root_op_id
    assert {op.self_ms_per_step for op in pipeline.ops} == {None}
    assert rows[1].evaluation == Evaluation(steps=32, step_ms=2.0, consumer_ms=1.5)


def test_what_keras_predicts_in_each_step_is_a_share_of_the_steps() -> None:
    call = NestedCall("predict", "/work/gan.py", 12, count=10, elapsed_ns=80 * MS)
    loop = make_recorded_loop(elapsed_ns=100 * MS, nested=[call])
    (row,) = loop_rows(make_recording(loops=[loop]), UNKNOWN, loop)
    (nested,) = row.nested
    assert (nested.what, nested.line, nested.percent, nested.ms) == ("predict", 12, 80.0, 8.0)


def trained(line: int, elapsed_s: float, **overrides: Any) -> RecordedLoop:
    return make_recorded_loop(
        id=f"loop{line}",
        line=line,
        elapsed_ns=int(elapsed_s * 1e9),
        asked_ns=None,
        planned_steps=None,
        **overrides,
    )


def chosen(wanted: int | None, *loops: RecordedLoop) -> tuple[int | None, str]:
    recording: Recording = make_recording(loops=list(loops), windows=[])
    loop, notes = chosen_loop(recording, UNKNOWN, wanted)
    return (loop.line if loop is not None else None), " ".join(notes)


def test_the_line_decides_where_one_is_given() -> None:
    line, said = chosen(10, trained(10, 3), trained(20, 9))
    assert line == 10
    assert "train.py:20" in said
