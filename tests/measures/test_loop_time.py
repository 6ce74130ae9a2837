"""Where the time of a loop goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.facts.run import first_batch_percent, steps_percent
from pipediag.measures.loop_time import (
    IN_GRAPH,
    TOO_SHORT,
    cache_filled_meanwhile,
    time_missing,
    time_of,
)
from pipediag.measures.loops import loop_rows, projected_s
from pipediag.session.loops import Loop, LoopTime
from pipediag.session.recorded_loops import RecordedLoop, RecordedSeam
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.session.recording import Recording
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
        "epoch_seams": [
            RecordedSeam(2190 * MS, 2290 * MS, 2790 * MS),
            RecordedSeam(2990 * MS, 3090 * MS, 3590 * MS),
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


def test_the_plan_is_filled_with_every_epochs_end() -> None:
    time = taken(fitted())
    assert (time.basis, time.epoch_ends_seen, time.first_batch_ms) == ("projected", 2, 500.0)
    assert time.steps_s == pytest.approx(2.39)
    assert time.first_batches_s == pytest.approx(11 * 0.5)
    assert time.between_epochs_s == pytest.approx(11 * 0.1)
    assert time.unexplained_s == 0.0
    # Start and first step took a second.
    assert projected_s(of(fitted()), fitted()) == pytest.approx(1.0 + time.total_s)


def test_making_an_epochs_iterators_is_not_what_the_script_does_between_them() -> None:
    seams = [
        RecordedSeam(2190 * MS, 2290 * MS, 2790 * MS, making_ns=60 * MS),
        RecordedSeam(2990 * MS, 3090 * MS, 3590 * MS, making_ns=60 * MS),
    ]
    time = taken(fitted(epoch_seams=seams))
    assert time.making_s == pytest.approx(11 * 0.06)
    assert time.between_epochs_s == pytest.approx(11 * 0.04)
    assert time.total_s == pytest.approx(taken(fitted()).total_s)


@pytest.mark.parametrize("making_ms", [[900], [900, 10], [10, 900, 10]])
def test_a_pause_that_came_once_is_no_part_of_the_loops_time(making_ms: list[int]) -> None:
    seams = [
        RecordedSeam(at * MS, (at + 1000) * MS, (at + 1010) * MS, making_ns=ms * MS)
        for at, ms in zip((2190, 3500, 4810), making_ms, strict=False)
    ]
    time = taken(fitted(epoch_seams=seams, last_ns=9000 * MS))
    assert time.making_s == pytest.approx(11 * 0.01 if len(making_ms) > 1 else 0.0)
    beside = (time.making_s, time.between_epochs_s, time.unexplained_s)
    assert sum(beside) + time.steps_s + time.first_batches_s == pytest.approx(time.total_s)


def test_a_training_that_resumes_has_only_the_ends_that_are_left() -> None:
    # The last 6 of 12 epochs.
    time = taken(fitted(planned_steps=120))
    assert time.steps_s == pytest.approx(1.19)
    assert time.first_batches_s == pytest.approx(5 * 0.5)


def test_without_a_plan_it_is_what_was_seen() -> None:
    time = taken(fitted(planned_steps=None))
    assert (time.basis, time.total_s) == ("measured", pytest.approx(1.79))
    assert time.steps_s == pytest.approx(0.59)
    assert time.first_batches_s == pytest.approx(1.0)
    assert projected_s(of(fitted(planned_steps=None)), fitted(planned_steps=None)) is None


def test_a_call_that_asks_for_its_batch_waits_in_its_first_step() -> None:
    seams = [RecordedSeam(2190 * MS, 2290 * MS, None, first_step_ns=510 * MS)]
    time = taken(fitted(epoch_seams=seams, planned_steps=None, last_ns=2990 * MS, warm_steps=40))
    assert time.first_batch_ms == pytest.approx(500.0)
    assert time.steps_s == pytest.approx(0.39)


def test_a_first_step_in_the_baseline_is_not_counted_twice() -> None:
    loop = fitted(
        epoch_seams=[RecordedSeam(2190 * MS, 4000 * MS, None, first_step_ns=510 * MS)],
        planned_steps=None,
    )
    first, rest = make_block(1, 510.0, start_ms=4000.0), make_block(9, 10.0, start_ms=4510.0)
    recording = make_recording(loops=[loop], windows=[make_window("baseline", first, rest)])
    time = time_of(recording, loop)
    assert time is not None
    assert time.steps_s <= 59 * 0.010 + 1e-9
    assert time.first_batch_ms == pytest.approx(500.0)


def test_steps_under_the_profiler_are_left_out() -> None:
    loop = fitted(planned_steps=None, last_ns=4290 * MS, warm_steps=69)
    profiled = make_window("profile", make_block(10, 50.0, start_ms=3700.0))
    recording = make_recording(
        loops=[loop], windows=[make_window("baseline", make_block(40)), profiled]
    )
    assert time_of(recording, loop) == taken(fitted(planned_steps=None))


def test_faster_steps_outside_the_baseline_leave_nothing_negative() -> None:
    time = taken(fitted(planned_steps=None, warm_steps=500))
    assert time.unexplained_s == 0.0


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
    seam = RecordedSeam(start_ns=at_ms * MS, asked_ns=at_ms * MS, handed_ns=None)
    return {"seams": 1, "epoch_seams": [seam]}


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
        {"seams": 1},
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


def test_its_time_is_not_carried_on_to_later_epochs() -> None:
    """The loop plans 625 steps, of which 60 were seen."""
    keras = make_recorded_loop().keras
    assert keras is not None
    keras = replace(keras, steps_per_epoch=125, epochs=5)
    seen: dict[str, Any] = {"warm_ns": 3000 * MS, "last_ns": 4400 * MS, "asked_ns": 2000 * MS}
    own = make_recorded_loop(root_op_id="batch", keras=keras, warm_steps=60, **seen)
    cached = make_recording(operations=CACHED, loops=[own])
    plain = make_recording(operations=chain("from_tensor_slices", "batch"), loops=[own])

    basis = [time.basis for one in (cached, plain) if (time := time_of(one, own)) is not None]
    assert basis == ["measured", "projected"]
    assert projected_s(cached, own) is None
    assert projected_s(plain, own) is not None


def test_a_cache_that_was_full_is_not_filled() -> None:
    """As from an earlier run, in a file; while it fills, it has inputs."""
    full = [make_node(1, "Root", [2]), make_node(2, "MemoryCacheImpl", [])]
    fills = [make_node(1, "Root", [2]), make_node(2, "MemoryCacheImpl", [3]), make_node(3, "X", [])]

    assert filled(snapshots=[make_snapshot(10, nodes=fills, output_id=1)]) == "cache"
    assert filled(snapshots=[make_snapshot(10, nodes=full, output_id=1)]) is None
