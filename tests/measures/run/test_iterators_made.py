"""What making an epoch's iterator takes, on spans made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.facts.run import where
from pipediag.measures.loop_time import PAUSES
from pipediag.measures.run.ledger import RunBounds, measure_run
from pipediag.session.ledger import PAUSE, Run
from pipediag.session.timeline import Span, Timeline
from pipediag.vocabulary import LoopRole, ScriptOutcome, SpanKind
from tests.factories import make_session
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS, SCRIPT

MADE = "making the iterator"


def seconds_of(run: Run, what: str) -> float:
    return sum(part.seconds for part in run.parts if part.what == what)


def ledger(outcome: ScriptOutcome, role: LoopRole = "training", made_ms: int = 300) -> Run:
    """Two epochs of 200 ms, each 300 ms after its iterator began to be made."""
    spans = [
        Span(3, "iterator", 0, made_ms * MS, "loop1"),
        Span(4, "steps", 300 * MS, 500 * MS, "loop1"),
        Span(5, "iterator", 500 * MS, (500 + made_ms) * MS, "loop1"),
        Span(6, "steps", 800 * MS, 1000 * MS, "loop1"),
    ]
    return measured(spans, outcome, role)


def made_in(*each_ms: int) -> Run:
    """As many epochs of 200 ms, stopped in the last of them."""
    spans, now = [], 0
    for number, ms in enumerate(each_ms):
        made, trained = (now + ms) * MS, (now + ms + 200) * MS
        spans.append(Span(3 + 2 * number, "iterator", now * MS, made, "loop1"))
        spans.append(Span(4 + 2 * number, "steps", made, trained, "loop1"))
        now += ms + 200
    return measured(spans, "stopped", end_ms=now)


def measured(
    spans: list[Span], outcome: ScriptOutcome, role: LoopRole = "training", end_ms: int = 1000
) -> Run:
    spans = [
        Span(1, "script", 0, end_ms * MS),
        Span(2, "fit", 0, end_ms * MS, "fit", SCRIPT, 20),
        *spans,
    ]
    keras = replace(make_recorded_loop().keras, epochs=10, steps_per_epoch=20)  # type: ignore[type-var]
    loop = make_recorded_loop(keras=keras, planned_steps=200, fill_ns=0, role=role)
    recording = make_recording(loops=[loop], windows=[make_window("baseline", make_block(40))])
    run = measure_run(Timeline(spans), recording, RunBounds(0, end_ms * MS, outcome))
    assert isinstance(run, Run)
    return run


def test_it_is_a_part_of_the_epochs_start() -> None:
    run = ledger("finished")
    assert run.seconds_of("epoch_start") == pytest.approx(0.6)
    assert run.seconds_of("epoch_end") == 0
    [part] = [part for part in run.parts if part.part == "epoch_start"]
    assert (part.what, part.line, part.count) == ("making the iterator", 20, 2)


def test_it_comes_in_each_planned_epoch() -> None:
    assert ledger("stopped").seconds_of("epoch_start") == pytest.approx(10 * 0.3)


@pytest.mark.parametrize(
    ("each_ms", "usual_s", "pause_s", "doubts"),
    [
        ((20, 700), 10 * 0.02, 0.7, 1),
        ((20, 700, 30), 0.02 + 9 * 0.03, 0.7, 1),
        ((20, 700, 30, 50), 0.02 + 9 * 0.04, 0.7, 1),
        ((20, 700, 300), 0.02 + 9 * 0.5, 0.0, 0),
        ((700, 20), 0.7 + 9 * 0.02, 0.0, 0),
        ((500, 700), 0.5 + 9 * 0.7, 0.0, 0),
        ((20, 700, 30, 700), 0.02 + 9 * 1.43 / 3, 0.0, 0),
    ],
)
def test_a_pause_that_came_once_is_a_row_of_its_own_and_stands_for_no_other_epoch(
    each_ms: tuple[int, ...], usual_s: float, pause_s: float, doubts: int
) -> None:
    run = made_in(*each_ms)
    assert seconds_of(run, MADE) == pytest.approx(usual_s)
    assert seconds_of(run, PAUSE) == pytest.approx(pause_s)
    said = [one for one in run.not_seen if one == PAUSES]
    assert len(said) == doubts


def test_a_pause_is_in_no_headline() -> None:
    run = made_in(20, 3000)
    session = make_session(run=run)
    [pause] = [part for part in run.parts if part.what == PAUSE]
    assert (pause.count, pause.basis, pause.ci95_percent) == (1, "measured", None)
    assert pause.percent > 20.0
    found = where(session)
    assert found is not None
    assert found.part == "steps"


def test_that_of_a_look_at_the_data_is_a_part_of_the_look() -> None:
    run = ledger("finished", "preview")
    assert run.seconds_of("epoch_start") == 0
    assert run.seconds_of("before_training") == pytest.approx(1.0)


def test_so_is_what_lies_between_it_and_the_first_step() -> None:
    run = ledger("finished", made_ms=1)
    assert run.seconds_of("epoch_start") == pytest.approx(0.6)
    assert run.seconds_of("epoch_end") == 0
    assert ledger("stopped", made_ms=1).seconds_of("epoch_start") == pytest.approx(10 * 0.3)


@pytest.mark.parametrize("kind", ["first_batch", "steps", "first_call"])
def test_what_lies_before_the_first_epoch_is_its_start_whatever_comes_next(kind: SpanKind) -> None:
    spans = [
        Span(1, "script", 0, 1000 * MS),
        Span(2, "fit", 0, 1000 * MS, "fit", SCRIPT, 20),
        Span(3, "iterator", 0, 100 * MS, "loop1"),
        Span(4, kind, 300 * MS, 400 * MS, "loop1"),
        Span(5, "steps", 400 * MS, 1000 * MS, "loop1"),
    ]
    recording = make_recording(loops=[make_recorded_loop(fill_ns=0)], windows=[])
    run = measure_run(Timeline(spans), recording, RunBounds(0, 1000 * MS, "finished"))
    assert isinstance(run, Run)
    assert sum(part.seconds for part in run.parts if part.what == MADE) == pytest.approx(0.3)
    assert run.seconds_of("before_training") == 0
