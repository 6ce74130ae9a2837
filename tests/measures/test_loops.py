"""The loops of the script, their time, and which of them is diagnosed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.facts.run import first_batch_percent, steps_percent
from pipediag.measures.loops import (
    IN_GRAPH,
    TOO_SHORT,
    cache_filled_meanwhile,
    chosen_loop,
    diagnosed_loop,
    loop_rows,
    projected_s,
    time_missing,
    time_of,
)
from pipediag.session.loops import Evaluation, Loop, LoopTime
from pipediag.session.messages import WantedLoop
from pipediag.session.recorded_loops import (
    RecordedBoundary,
    RecordedEvaluation,
    RecordedLoop,
    RecordedNestedCall,
)
from pipediag.session.recording import RecordedOperation, Recording
from tests.factories import make_session
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


def fitted(**overrides: Any) -> RecordedLoop:
    """Epochs of 20 steps of 10 ms; 500 ms for a first batch and 100 ms of validation between.

    Seen from 2 s to 4.2 s: the first epoch's last 19 steps, two whole epochs, and two ends.
    """
    keras = replace(make_recorded_loop().keras, epochs=12, steps_per_epoch=20)  # type: ignore[type-var]
    values: dict[str, Any] = {
        "steps": 60,
        "elapsed_ns": 590 * MS,
        "planned_steps": 240,
        "keras": keras,
        "asked_ns": 1000 * MS,
        "warm_ns": 2000 * MS,
        "last_ns": 3790 * MS,
        "warm_steps": 59,
        "epoch_boundaries": [
            RecordedBoundary(2190 * MS, 2290 * MS, 2790 * MS),
            RecordedBoundary(2990 * MS, 3090 * MS, 3590 * MS),
        ],
        **overrides,
    }
    return make_recorded_loop(**values)


def of(loop: RecordedLoop) -> Recording:
    return make_recording(loops=[loop], windows=[make_window("baseline", make_block(40))])


def taken(recorded: RecordedLoop) -> LoopTime:
    time = time_of(of(recorded), recorded)
    assert time is not None
    beside = (time.making_s, time.between_epochs_s, time.unexplained_s)
    parts = (time.steps_s, time.first_batches_s, *beside)
    assert sum(parts) == pytest.approx(time.total_s)
    return time


def row(recorded: RecordedLoop) -> Loop:
    [only] = loop_rows(of(recorded), recorded)
    return only


def test_what_was_seen_is_as_often_in_the_plan() -> None:
    time = taken(fitted())
    assert (time.epoch_ends_seen, time.first_batch_ms) == (2, 500.0)
    # Start and first step took a second; 239 steps are left of 240, and 59 were seen.
    assert projected_s(of(fitted()), fitted()) == pytest.approx(1.0 + time.total_s * 239 / 59)


def test_making_an_epochs_iterators_is_not_what_the_script_does_between_them() -> None:
    boundaries = [
        RecordedBoundary(2190 * MS, 2290 * MS, 2790 * MS, making_ns=60 * MS),
        RecordedBoundary(2990 * MS, 3090 * MS, 3590 * MS, making_ns=60 * MS),
    ]
    time = taken(fitted(epoch_boundaries=boundaries))
    assert time.making_s == pytest.approx(2 * 0.06)
    assert time.between_epochs_s == pytest.approx(2 * 0.04)
    assert time.total_s == pytest.approx(taken(fitted()).total_s)


def test_without_a_plan_it_is_what_was_seen() -> None:
    time = taken(fitted(planned_steps=None))
    assert time.total_s == pytest.approx(1.79)
    assert time.steps_s == pytest.approx(0.59)
    assert time.first_batches_s == pytest.approx(1.0)
    assert projected_s(of(fitted(planned_steps=None)), fitted(planned_steps=None)) is None


def test_a_call_that_asks_for_its_batch_waits_in_its_first_step() -> None:
    boundaries = [RecordedBoundary(2190 * MS, 2290 * MS, None, first_step_ns=510 * MS)]
    time = taken(
        fitted(epoch_boundaries=boundaries, planned_steps=None, last_ns=2990 * MS, warm_steps=40)
    )
    assert time.first_batch_ms == pytest.approx(500.0)
    assert time.steps_s == pytest.approx(0.39)


def test_steps_under_the_profiler_are_left_out() -> None:
    loop = fitted(planned_steps=None, last_ns=4290 * MS, warm_steps=69)
    profiled = make_window("profile", make_block(10, 50.0, start_ms=3700.0))
    recording = make_recording(
        loops=[loop], windows=[make_window("baseline", make_block(40)), profiled]
    )
    assert time_of(recording, loop) == taken(fitted(planned_steps=None))


@pytest.mark.parametrize(
    "overrides", [{"warm_ns": None}, {"last_ns": None}, {"warm_steps": 0}, {"last_ns": 2000 * MS}]
)
def test_too_little_is_missing_with_a_reason(overrides: dict[str, Any]) -> None:
    loop = row(fitted(**overrides))
    assert (loop.time, loop.time_missing) == (None, TOO_SHORT)
    assert (first_batch_percent(make_session(loops=[loop])), steps_percent(loop)) == (0.0, None)
    assert time_missing(fitted(kind="in_graph")) == IN_GRAPH


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


@pytest.mark.parametrize(
    "there",
    [
        {"planned_rounds": 1},
        {"operations": chain("range", "map", "batch")},
        {"operations": chain("range", "cache", "repeat", "batch")},
        {"role": "evaluation"},
        ended(4389),
        {"boundaries": 1},
        {"root_op_id": None},
        {"id": "another"},
    ],
    ids=[
        "one epoch",
        "no cache",
        "its ends are not seen",
        "no training",
        "an epoch ended",
        "nobody knows when",
        "no tf.data",
        "not measured",
    ],
)
def test_of_others_that_is_not_said(there: dict[str, Any]) -> None:
    assert filled(**there) is None


def test_a_cache_that_was_full_is_not_filled() -> None:
    """As from an earlier run, in a file; while it fills, it has inputs."""
    full = [make_node(1, "Root", [2]), make_node(2, "MemoryCacheImpl", [])]
    fills = [make_node(1, "Root", [2]), make_node(2, "MemoryCacheImpl", [3]), make_node(3, "X", [])]

    assert filled(snapshots=[make_snapshot(10, nodes=fills, output_id=1)]) == "cache"
    assert filled(snapshots=[make_snapshot(10, nodes=full, output_id=1)]) is None


def windows(loop_id: str, step_ms: float) -> list[object]:
    return [make_window("baseline", make_block(10, step_ms), loop_id=loop_id)]


def test_the_most_expensive_training_loop_is_diagnosed() -> None:
    cheap = make_recorded_loop(planned_steps=100, elapsed_ns=120 * MS)
    dear = make_recorded_loop(id="loop2", planned_steps=50, elapsed_ns=100 * MS)
    recording = make_recording(
        loops=[cheap, dear], windows=[*windows("loop1", 2.0), *windows("loop2", 8.0)]
    )
    assert diagnosed_loop(recording) is dear
    assert [row.diagnosed for row in loop_rows(recording, dear)] == [False, True]


def test_a_measured_loop_goes_before_a_dear_one_that_was_not() -> None:
    measured = make_recorded_loop()
    cut_off = make_recorded_loop(id="loop2", planned_steps=10**6)
    recording = make_recording(
        loops=[measured, cut_off],
        windows=[*windows("loop1", 2.0), make_window("warmup", loop_id="loop2")],
    )
    assert diagnosed_loop(recording) is measured


def test_a_loop_that_evaluates_has_its_pipeline_as_written_and_a_look_at_its_steps() -> None:
    training = make_recorded_loop()
    seen = RecordedEvaluation(32, 64 * MS, [1_500] * 32)
    validation = make_recorded_loop(id="loop2", role="validation", evaluation=seen)
    recording = make_recording(loops=[training, validation])
    rows = loop_rows(recording, training)

    assert rows[0].root_op_id == training.root_op_id
    assert (rows[0].pipeline, rows[0].evaluation) == (None, None)
    pipeline = rows[1].pipeline
    assert pipeline is not None
    assert [op.id for op in pipeline.ops][-1] == rows[1].root_op_id == training.root_op_id
    assert {op.self_ms_per_step for op in pipeline.ops} == {None}
    assert not any(op.removed_by_tensorflow for op in pipeline.ops)
    assert rows[1].evaluation == Evaluation(steps=32, step_ms=2.0, consumer_ms=1.5)


def test_what_keras_predicts_in_each_step_is_a_share_of_the_steps() -> None:
    call = RecordedNestedCall("predict", "/work/gan.py", 12, count=10, elapsed_ns=80 * MS)
    loop = make_recorded_loop(elapsed_ns=100 * MS, nested=[call])
    (row,) = loop_rows(make_recording(loops=[loop]), loop)
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


def chosen(wanted: WantedLoop | None, *loops: RecordedLoop) -> tuple[int | None, str]:
    recording: Recording = make_recording(loops=list(loops), windows=[])
    loop, notes = chosen_loop(recording, wanted)
    return (loop.line if loop is not None else None), " ".join(notes)


def test_the_line_decides_where_one_is_given() -> None:
    line, said = chosen(10, trained(10, 3), trained(20, 9))
    assert line == 10
    assert "is the one that --loop asks for. Others were seen at train.py:20." in said


def stopped(wanted: WantedLoop | None, *loops: RecordedLoop, outcome: str = "stopped") -> str:
    recording = make_recording(loops=list(loops), windows=[], outcome=outcome)
    return " ".join(chosen_loop(recording, wanted)[1])


def test_a_loop_that_was_cut_off_is_as_long_as_its_data_tell() -> None:
    short = trained(10, 7.5, steps=750, last_ns=10)
    long = trained(20, 2, steps=200, last_ns=20, data_steps=375, planned_rounds=20)
    assert "the one at train.py:20 is diagnosed: it takes most, 75 s" in stopped(None, short, long)
    # As while it is held for trials.
    assert "train.py:20 is diagnosed" in stopped(None, short, long, outcome="running")
    # It ended by itself.
    assert "train.py:10 is diagnosed" in stopped(None, short, long, outcome="finished")
    long.last_ns = 5
    assert "train.py:10 is diagnosed" in stopped(None, short, long)
