"""How much time each place took, and the steady step."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.run.amounts import (
    Amounts,
    Projected,
    amounts_of,
    in_doubt,
    starts_of,
    steady_step,
    steps_of,
)
from pipediag.measures.run.places import Place, Spent
from pipediag.session.recorded_loops import RecordedBoundary, RecordedLoop
from pipediag.session.recording import RecordedWindow
from pipediag.session.timeline import Span, Timeline
from pipediag.vocabulary import SpanKind
from tests.measures.run.runs import Written, ledger, own_loop, recording_of
from tests.recordings import (
    make_block,
    make_recorded_loop,
    make_recorded_operation,
    make_recording,
    make_window,
)
from tests.records import MS

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


def test_a_first_call_has_waited_traced_and_made_a_step() -> None:
    loop = own_loop(fill_ns=30)
    stretches = Stretches()
    stretches.add(COMPILE, 1000, "first_call", loop_id="loop1")
    stretches.add(steps_of(loop), 5000, "steps", loop_id="loop1")

    known = amounts(stretches, loop)
    assert known.ns == {COMPILE: 870, steps_of(loop): 5100, starts_of(loop): 30}
    assert known.count[starts_of(loop)] == 1


@pytest.mark.parametrize(
    ("iterators", "kept", "waited"),
    [(3, "map", 110), (3, "cache", 500), (3, "snapshot", 500), (1, "map", 500)],
)
def test_a_first_wait_holds_no_building_where_later_epochs_tell_how_long_it_is(
    iterators: int, kept: str, waited: int
) -> None:
    boundaries = [RecordedBoundary(6000, 6000, None, took) for took in (150, 210)]
    loop = own_loop(fill_ns=500, iterators=iterators, epoch_boundaries=boundaries)
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


@pytest.mark.parametrize(("asked_ns", "waits"), [(0, []), (1000, []), (1001, [400])])
def test_an_epoch_that_begins_with_a_first_call_tells_no_wait(
    asked_ns: int, waits: list[int]
) -> None:
    """The call lasts from 0 to 1,000; the epoch's first step took 500."""
    loop = own_loop(fill_ns=0, epoch_boundaries=[RecordedBoundary(0, asked_ns, None, 500)])
    stretches = Stretches()
    stretches.add(COMPILE, 1000, "first_call", loop_id="loop1")

    assert amounts(stretches, loop).waits_ns == {"loop1": waits}


@pytest.mark.parametrize(("fill_ns", "waited_s"), [(400 * MS, 0.4), (None, 0.0), (5000 * MS, 0.6)])
def test_what_an_evaluations_first_call_waited_is_not_its_building(
    fill_ns: int | None, waited_s: float
) -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.span("evaluation", 5.0, 6.0, "evaluate", 30)
    run.steps(5.0, 6.0, "loop2")
    run.span("first_call", 5.0, 5.6, "test_function", 30)
    loop = make_recorded_loop(id="loop2", role="evaluate", line=30, fill_ns=fill_ns)
    report = ledger(run, recording_of(loop), 10.0)
    assert report.seconds_of("compile") == pytest.approx(0.6 - waited_s)
    assert report.seconds_of("evaluation") == pytest.approx(0.4 + waited_s)


BEGIN_MS = 1000


def baseline(*durations_ms: int, **overrides: Any) -> RecordedWindow:
    """Steps of a loop whose function is called at the begin of each."""
    begins_ms = [BEGIN_MS + sum(durations_ms[:number]) for number in range(len(durations_ms))]
    block = make_block(
        starts_ns=[one * MS for one in begins_ms],
        durations_ns=[one * MS for one in durations_ms],
        **{"gaps_us": [], **overrides},
    )
    return make_window("baseline", block)


def built_in(*numbers: int, durations_ms: list[int], call_ms: int = 90) -> list[Span]:
    """A first call of these steps, which begins a little before the step does, and its tracing."""
    spans = []
    for number in numbers:
        begin = (BEGIN_MS + sum(durations_ms[:number])) * MS
        spans.append(Span(2 * number, "first_call", begin - 9000, begin + call_ms * MS, "step"))
        spans.append(Span(2 * number + 1, "tracing", begin + MS, begin + (call_ms // 2 + 1) * MS))
    return spans


def steady(spans: list[Span], *windows: RecordedWindow, **of_loop: Any) -> Projected | None:
    loop = make_recorded_loop(**of_loop)
    return steady_step(Timeline(spans), make_recording(loops=[loop], windows=list(windows)), loop)


def steady_ms(spans: list[Span], *windows: RecordedWindow) -> float:
    step = steady(spans, *windows)
    return step.ns / MS


def test_steps_that_build_their_function_are_no_steady_ones() -> None:
    durations = [100, 10, 100, 12, 100, 100, 14]
    spans = built_in(0, 2, 4, 5, durations_ms=durations)
    assert steady_ms(spans, baseline(*durations)) == pytest.approx(12.0)


def test_where_each_builds_a_repeated_batch_tells_and_the_waits_beside_it() -> None:
    durations = [100, 120, 110, 100]
    spans = built_in(0, 1, 2, 3, durations_ms=durations)
    waits = [1 * MS, 3 * MS, 2 * MS, 2 * MS]
    repeated = make_window("repeat", make_block(20, 8.0, None, start_ms=9000.0))
    found = steady_ms(spans, baseline(*durations, waits_ns=waits), repeated)
    assert found == pytest.approx(8.0 + 2.0)
    # Where the step asks for its batch itself, tf.data's own clock tells of the wait.
    gaps = [97_000, 117_000, 107_000, 97_000]
    assert steady_ms(spans, baseline(*durations, gaps_us=gaps), repeated) == pytest.approx(11.0)


@pytest.mark.parametrize(
    ("spans", "windows", "ms"),
    [
        ([], [baseline(10, 12, 11, 11)], 11.0),
        ([], [make_window("warmup", make_block(3, 8.0))], 8.0),
        ([], [], 2 * 6.0),
        (built_in(0, 1, durations_ms=[100, 120]), [baseline(100, 120)], 110.0 - 45.0),
    ],
)
def test_few_steps_or_none_are_as_uncertain_as_what_comes_once(
    spans: list[Span], windows: list[RecordedWindow], ms: float
) -> None:
    found = steady(spans, *windows, batches_per_call=2, elapsed_ns=600 * MS, steps=100)
    assert found.ns == pytest.approx(ms * MS)
    assert found == in_doubt(found.ns, 1)


def test_five_steps_have_the_limits_of_their_scatter_and_no_step_has_none() -> None:
    five = steady([], baseline(10, 10, 10, 10, 10))
    assert five.limits_ns == (five.ns, five.ns)
    assert steady([], elapsed_ns=0, steps=0) is None
