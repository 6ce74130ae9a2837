"""Nanoseconds by place, and what hooks can't tell apart divided by the steady step."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.run.amounts import Amounts, amounts_of, starts_of, steps_of
from pipediag.measures.run.places import PIPEDIAG, Place, Spent
from pipediag.session.recorded_loops import RecordedLoop, RecordedSeam
from pipediag.session.recording import RecordedEnvironment
from pipediag.session.timeline import Span
from pipediag.vocabulary import SpanKind
from tests.measures.run.runs import own_loop, recording_of
from tests.recordings import (
    make_block,
    make_recorded_operation,
    make_recording,
    make_window,
)

HERE, THERE = Place("before_training"), Place("between_loops")
COMPILE = Place("compile", "step", "train.py", 40)
STEP_NS = 100


class Stretches:
    """One after the other, from moment 0."""

    def __init__(self) -> None:
        self.spent: list[Spent] = []

    def add(
        self, place: Place, ns: int, kind: SpanKind, id: int = 0, loop_id: str | None = None
    ) -> None:
        start = self.spent[-1].end_ns if self.spent else 0
        span = Span(id or 100 + len(self.spent), kind, start, None)
        self.spent.append(Spent(place, start, start + ns, None, span, loop_id, span.id))


def amounts(stretches: Stretches, loop: RecordedLoop, step_ns: float | None = STEP_NS) -> Amounts:
    known = {} if step_ns is None else {loop.id: step_ns}
    return amounts_of(stretches.spent, make_recording(loops=[loop], windows=[]), known)


def seam(first_step_ns: int | None) -> RecordedSeam:
    return RecordedSeam(0, 0, None, first_step_ns)


@pytest.mark.parametrize(
    ("asked", "left", "there"), [(3, 7, 4), (10, 0, 11), (50, 0, 11), (0, 10, 1), (-5, 10, 1)]
)
def test_no_more_is_moved_than_there_is(asked: int, left: int, there: int) -> None:
    known = Amounts({HERE: 10, THERE: 1}, {})
    known.move(asked, HERE, THERE)

    assert known.ns == {HERE: left, THERE: there}


def test_what_is_moved_to_a_new_place_is_all_that_is_there() -> None:
    known = Amounts({HERE: 10}, {})
    known.move(4, HERE, THERE)
    known.move(4, COMPILE, THERE)

    assert known.ns == {HERE: 6, THERE: 4}


def test_stretches_of_a_place_are_added_up_and_its_spans_counted() -> None:
    stretches = Stretches()
    evaluation = Place("evaluation", "`evaluate`")
    stretches.add(HERE, 3, "script")
    stretches.add(evaluation, 5, "evaluation", id=7)
    stretches.add(HERE, 4, "fit")
    stretches.add(evaluation, 6, "evaluation", id=7)
    stretches.add(evaluation, 1, "evaluation", id=8)

    known = amounts(stretches, own_loop(), None)
    assert known.ns == {HERE: 7, evaluation: 12}
    assert known.count == {evaluation: 2}


def test_steps_are_counted_by_the_loop_in_calls() -> None:
    loop = own_loop(steps=61, batches_per_call=4)
    stretches = Stretches()
    stretches.add(steps_of(loop), 500, "steps")

    assert amounts(stretches, loop, None).count == {steps_of(loop): 15}


def test_a_loop_that_was_not_written_has_no_count() -> None:
    assert amounts(Stretches(), own_loop(), None).count == {}


def test_a_first_call_has_waited_traced_and_made_a_step() -> None:
    loop = own_loop(fill_ns=30)
    stretches = Stretches()
    stretches.add(COMPILE, 1000, "first_call", loop_id="loop1")
    stretches.add(steps_of(loop), 5000, "steps", loop_id="loop1")

    known = amounts(stretches, loop)
    assert known.ns == {COMPILE: 870, steps_of(loop): 5100, starts_of(loop): 30}
    assert known.count[starts_of(loop)] == 1


@pytest.mark.parametrize(
    ("call", "fill", "step", "waited"), [(120, 30, 90, 30), (20, 30, 0, 20), (60, None, 60, 0)]
)
def test_a_first_call_gives_no_more_than_it_took(
    call: int, fill: int | None, step: int, waited: int
) -> None:
    loop = own_loop(fill_ns=fill)
    stretches = Stretches()
    stretches.add(COMPILE, call, "first_call", loop_id="loop1")
    known = amounts(stretches, loop)

    assert known.ns.get(COMPILE, 0) == 0
    assert known.ns.get(steps_of(loop), 0) == step
    assert known.ns.get(starts_of(loop), 0) == waited


def test_only_the_first_of_them_has_waited() -> None:
    loop = own_loop(fill_ns=30)
    stretches = Stretches()
    for _ in range(2):
        stretches.add(COMPILE, 1000, "first_call", loop_id="loop1")

    assert amounts(stretches, loop).ns == {COMPILE: 1770, steps_of(loop): 200, starts_of(loop): 30}


def test_a_wait_that_was_seen_is_in_no_call() -> None:
    loop = own_loop(fill_ns=30, epoch_seams=[seam(500)])
    stretches = Stretches()
    stretches.add(starts_of(loop), 40, "first_batch")
    stretches.add(COMPILE, 1000, "first_call", loop_id="loop1")

    known = amounts(stretches, loop)
    assert known.ns == {starts_of(loop): 40, COMPILE: 900, steps_of(loop): 100}
    assert known.count[starts_of(loop)] == 1


@pytest.mark.parametrize(
    ("kind", "loop_id"), [("tracing", "loop1"), ("first_call", "loop2"), ("first_call", None)]
)
def test_tracing_alone_and_calls_elsewhere_give_no_step(kind: SpanKind, loop_id: str) -> None:
    loop = own_loop(fill_ns=0)
    stretches = Stretches()
    stretches.add(COMPILE, 1000, kind, loop_id=loop_id)

    assert amounts(stretches, loop).ns == {COMPILE: 1000}


def test_waits_within_calls_are_what_the_first_step_took_longer() -> None:
    loop = own_loop(fill_ns=0, epoch_seams=[seam(150), seam(None), seam(90), seam(310)])
    stretches = Stretches()
    stretches.add(steps_of(loop), 5000, "steps", loop_id="loop1")

    known = amounts(stretches, loop)
    assert known.waits_ns == {loop.id: [50, 0, 210]}
    assert known.ns == {steps_of(loop): 4740, starts_of(loop): 260}
    assert known.count[starts_of(loop)] == 4


@pytest.mark.parametrize(
    ("iterators", "kept", "waited"),
    [(3, "map", 110), (3, "cache", 500), (3, "snapshot", 500), (1, "map", 500)],
)
def test_a_first_wait_holds_no_building_where_later_epochs_tell_how_long_it_is(
    iterators: int, kept: str, waited: int
) -> None:
    seams = [RecordedSeam(6000, 6000, None, took) for took in (150, 210)]
    loop = own_loop(fill_ns=500, iterators=iterators, epoch_seams=seams)
    stretches = Stretches()
    stretches.add(COMPILE, 1000, "first_call", loop_id="loop1")
    stretches.add(steps_of(loop), 5000, "steps", loop_id="loop1")
    operations = [
        make_recorded_operation("op2", kept),
        make_recorded_operation(str(loop.root_op_id), "batch", parent_ids=["op2"]),
    ]
    recording = make_recording(loops=[loop], windows=[], operations=operations)

    known = amounts_of(stretches.spent, recording, {loop.id: STEP_NS})
    assert known.ns[starts_of(loop)] == 50 + 110 + waited
    assert known.ns[COMPILE] == 1000 - waited - STEP_NS


@pytest.mark.parametrize(("kind", "steps"), [("eager", 1000), ("in_graph", 0)])
def test_steps_under_the_profiler_are_the_scripts_own(kind: Any, steps: int) -> None:
    loop = own_loop(kind=kind, fill_ns=0)
    recording = recording_of(loop)
    recording.windows = [make_window("profile", make_block(10, 1.0))]
    stretches = Stretches()
    stretches.add(PIPEDIAG, 7000, "aside")

    known = amounts_of(stretches.spent, recording, {"loop1": STEP_NS})
    assert known.ns[PIPEDIAG] == 7000 - steps
    assert known.ns.get(steps_of(loop), 0) == steps


@pytest.mark.parametrize(
    ("backend", "first_step_ns", "traced", "built"),
    [
        ("jax", 900, False, 800),
        ("jax", None, False, 0),
        ("jax", 900, True, 0),
        ("jax", 50, False, 0),
        ("tensorflow", 900, False, 0),
    ],
)
def test_jax_compiles_in_its_first_step(
    backend: str, first_step_ns: int | None, traced: bool, built: int
) -> None:
    loop = own_loop(fill_ns=0, first_step_ns=first_step_ns)
    environment = RecordedEnvironment("3.11.9", "python", keras_backend=backend)
    stretches = Stretches()
    stretches.add(steps_of(loop), 5000, "steps", loop_id="loop1")
    if traced:
        stretches.add(COMPILE, 0, "first_call", loop_id="loop1")

    recording = make_recording(loops=[loop], windows=[], environment=environment)
    known = amounts_of(stretches.spent, recording, {"loop1": STEP_NS})
    place = Place("compile", "the step of `fit`", "train.py", 30)
    assert known.ns.get(place, 0) == built
    assert known.ns[steps_of(loop)] == 5000 - built


def test_only_trainings_with_a_known_step_are_settled() -> None:
    validation = own_loop(role="validation", fill_ns=30, epoch_seams=[seam(900)])
    stretches = Stretches()
    stretches.add(steps_of(validation), 5000, "steps", loop_id="loop1")

    assert amounts(stretches, validation).ns == {steps_of(validation): 5000}
    training = own_loop(fill_ns=30, epoch_seams=[seam(900)])
    assert amounts(stretches, training, None).ns == {steps_of(training): 5000}


def test_tracing_and_calls_of_other_loops_have_made_no_step_of_this_one() -> None:
    loop = own_loop(fill_ns=0)
    stretches = Stretches()
    stretches.add(COMPILE, 1000, "tracing", loop_id="loop1")
    stretches.add(COMPILE, 1000, "first_call", loop_id="loop2")
    stretches.add(HERE, 1000, "first_call", loop_id="loop1")

    assert amounts(stretches, loop).ns == {COMPILE: 2000, HERE: 1000}


@pytest.mark.parametrize(("asked_ns", "waits"), [(0, []), (1000, []), (1001, [400])])
def test_an_epoch_that_begins_with_a_first_call_tells_no_wait(
    asked_ns: int, waits: list[int]
) -> None:
    """The call lasts from 0 to 1,000; the epoch's first step took 500."""
    loop = own_loop(fill_ns=0, epoch_seams=[RecordedSeam(0, asked_ns, None, 500)])
    stretches = Stretches()
    stretches.add(COMPILE, 1000, "first_call", loop_id="loop1")

    assert amounts(stretches, loop).waits_ns == {"loop1": waits}
