"""A training that was stopped, projected to its end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.measures.run.epochs import as_often, projected
from pipediag.session.ledger import COMES_ONCE
from pipediag.session.recorded_loops import RecordedSeam
from tests.measures.run.runs import (
    FIT_LINE,
    Written,
    fit_loop,
    ledger,
    ns,
    own_loop,
    recording_of,
    row,
    rows,
    seen,
)
from tests.recordings import make_recorded_operation

AFTER = "what the script does after this training"


def epochs_of_a_fit(ends: int) -> Written:
    """Stopped within the epoch after so many ends; epochs of 200 steps of 10 ms take 5 s each.

    Waits of 0.5, 0.2, 0.3 and 0.1 s; validations of 0.5, 0.4 and 0.6 s; callbacks of 0.1 s.
    """
    run = Written()
    run.span("script", 1.0, 7.0 + 5.0 * ends)
    run.span("fit", 4.0, 7.0 + 5.0 * ends, "fit", FIT_LINE)
    for epoch in range(ends + 1):
        asked = 5.0 + 5.0 * epoch
        handed = asked + (0.5, 0.2, 0.3, 0.1)[epoch]
        if epoch == ends:
            run.epoch(asked, handed, handed + 1.0)
            continue
        run.epoch(asked, handed, handed + 2.0)
        validated = handed + 2.0 + (0.5, 0.4, 0.6)[epoch]
        run.span("evaluation", handed + 2.0, validated, "evaluate", FIT_LINE)
        run.span("callback", validated, validated + 0.1, "Saves", 7)
    return run


def test_three_ends_are_carried_on_with_their_scatter() -> None:
    report = ledger(epochs_of_a_fit(3), recording_of(fit_loop(epochs=10)), 60.0, "stopped")

    # By epoch 0.5 s of validation and 0.1 s of callback; between them 1.9, 2.3 and 2.0 s.
    assert rows(report) == {
        ("startup", "the interpreter"): 1.0,
        ("before_training", None): 4.0,
        ("epoch_start", None): 2.3,  # 0.5 s, and nine times 0.2 s
        ("steps", None): 20.0,
        ("evaluation", "validation in `fit`"): 5.0,
        ("epoch_end", None): 20.6667,
        ("epoch_end", "the callback Saves"): 1.0,
    }
    assert report.projected_total_s == pytest.approx(53.96667, abs=1e-4)
    assert report.total_s == pytest.approx(1 + 4 + 1.1 + 7.0 + 1.5 + 0.3 + 6.2 + 0.9)
    assert (report.scope, report.projected_missing) == ("run", None)
    assert (report.epochs_seen, report.epochs_planned) == (3.5, 10)
    assert report.not_seen == [AFTER]

    assert {part.part: part.basis for part in report.parts} == {
        "startup": "measured",
        "before_training": "measured",
        "epoch_start": "projected",
        "steps": "projected",
        "evaluation": "projected",
        "epoch_end": "projected",
    }
    assert row(report, "epoch_start").count == 10
    assert row(report, "steps").count == 2000
    assert row(report, "evaluation", "validation in `fit`").count == 10
    assert report.seen == []


def test_waits_within_calls_are_carried_on() -> None:
    run = Written()
    run.span("script", 0.0, 9.0)
    run.span("fit", 0.0, 9.0, "fit", FIT_LINE)
    run.steps(1.0, 4.0)
    run.span("first_call", 1.0, 2.5, "one_step", FIT_LINE)
    run.steps(5.0, 9.0)
    seams = [RecordedSeam(ns(4), ns(5), None, ns(0.31))]
    loop = fit_loop(epochs=10, fill_ns=ns(0.25), epoch_seams=seams)

    assert rows(ledger(run, recording_of(loop), 9.0, "stopped")) == {
        ("before_training", None): 1.0,
        ("compile", "the step of `fit`"): 1.24,
        ("epoch_start", None): 2.95,  # 0.25 s, and nine times 0.3 s
        ("steps", None): 20.0,
        ("epoch_end", None): 10.0,
    }


def test_trainings_before_the_one_that_was_stopped_stay() -> None:
    run = Written()
    run.span("script", 0.0, 20.0)
    for start in (1.0, 11.0):
        run.span("fit", start, start + 9.0, "fit", FIT_LINE)
        run.epoch(start, start + 0.5, start + 2.5)
        run.span("evaluation", start + 2.5, start + 3.5, "evaluate", FIT_LINE)
        if start == 1.0:
            run.epoch(start + 4.0, start + 4.25, start + 6.25)
            run.span("evaluation", start + 6.25, start + 7.25, "evaluate", FIT_LINE)
        else:
            run.epoch(start + 4.0, start + 4.25, start + 9.0 - 2.25)
            run.span("aside", start + 6.75, start + 9.0)
    report = ledger(run, recording_of(fit_loop(epochs=4)), 20.0, "stopped")

    # The first fold as it was, then four epochs of 200 steps, starts and ends.
    assert rows(report) == {
        ("before_training", None): 1.0,
        ("epoch_start", None): 0.75 + 0.5 + 3 * 0.25,
        ("steps", None): 4.0 + 8.0,
        ("evaluation", "validation in `fit`"): 2.0 + 4.0,
        ("epoch_end", None): 2.25 + 4 * 0.5,
        ("between_loops", None): 1.0,
    }
    assert row(report, "steps").count is None
    assert report.epochs_seen == 2.0


def custom(ends: int) -> Written:
    """A loop of the script's own; 0.8 s of each second between its epochs is spent at line 40."""
    run = Written()
    run.span("script", 0.0, 4.0 + 4.0 * ends)
    for epoch in range(ends + 1):
        asked = 1.0 + 4.0 * epoch
        run.epoch(asked, asked + 1.0, asked + 3.0)
        if epoch < ends:
            run.saw(asked + 3.0, asked + 4.0, seen(40, 0.8))
    return run


def test_without_a_known_end_it_is_an_epoch_where_its_length_is_known() -> None:
    root = make_recorded_operation("op3", "batch", cardinality=200)
    recording = recording_of(own_loop(), operations=[root])
    report = ledger(custom(3), recording, 60.0, "stopped")

    assert rows(report) == {
        ("epoch_start", None): 1.0,
        ("steps", None): 2.0,
        ("epoch_end", "the script's own line"): 0.8,
        ("epoch_end", None): 0.2,
    }
    assert report.scope == "epoch"
    assert report.projected_missing == (
        "Nothing says how many epochs the script would train, and it was stopped: this is one of "
        "them."
    )
    assert report.projected_total_s == pytest.approx(4.0)
    assert report.total_s == pytest.approx(16.0)
    assert report.not_seen == [COMES_ONCE]
    assert (report.epochs_seen, report.epochs_planned) == (3.0, None)
    line = row(report, "epoch_end", "the script's own line")
    assert (line.line, line.basis) == (40, "projected")
    # What comes once is no part of an epoch, and is told beside it.
    assert sum(one.seconds for one in report.seen) == pytest.approx(report.total_s)
    assert {one.basis for one in report.seen} == {"measured"}
    assert "before_training" in {one.part for one in report.seen}


@given(
    st.lists(st.integers(0, 10**10), max_size=8),
    st.integers(0, 50),
    st.floats(0.0, 20.0),
    st.integers(0, 10**9),
    st.integers(1, 9),
)
def test_a_projected_value_lies_within_its_limits(
    times: list[int], count: int, factor: float, more: int, rounds: int
) -> None:
    one = projected(times, count)
    for found in (
        one,
        one.share(factor),
        one.times(rounds),
        one.plus_ns(more),
        one.together(one.share(factor)),
        as_often(times, factor),
    ):
        low, high = found.limits_ns or (found.ns, found.ns)
        assert low <= found.ns * (1 + 1e-9)
        assert found.ns <= high * (1 + 1e-9)


def test_epochs_that_take_longer_than_their_steady_steps_are_carried_on_as_they_were() -> None:
    run = Written()
    run.span("script", 0.0, 13.0)
    run.span("fit", 0.0, 13.0, "fit", FIT_LINE)
    for epoch in range(4):
        run.epoch(3.0 * epoch, 3.0 * epoch + 0.1, 3.0 * epoch + 2.9)
    run.epoch(12.0, 12.1, 13.0)
    report = ledger(run, recording_of(fit_loop(epochs=10)), 13.0, "stopped")

    # 2.8 s an epoch where 200 steady steps take 2.0: their last steps wait for threads to go.
    assert row(report, "steps").seconds == pytest.approx(28.0)
    assert row(report, "steps").count == 2000
    assert row(report, "epoch_start").seconds == pytest.approx(1.0)


@pytest.mark.parametrize(("planned", "scope"), [(1000, "run"), (None, "epoch")])
def test_what_interrupts_an_epoch_comes_as_often_as_it_came_in_its_steps(
    planned: int | None, scope: str
) -> None:
    run = Written()
    run.span("script", 0.0, 7.0)
    for number in range(6):
        asked = float(number)
        run.epoch(asked, asked + 0.1, asked + 0.4)
        run.span("evaluation", asked + 0.4, asked + 0.9, "predict", 33)
    run.epoch(6.0, 6.1, 6.3)
    root = make_recorded_operation("op3", "batch", cardinality=400)
    recording = recording_of(own_loop(planned_steps=planned), operations=[root])
    report = ledger(run, recording, 7.0, "stopped")

    # Each 30 of 200 steps that were seen, six times.
    steps = planned or 400
    assert report.scope == scope
    assert row(report, "steps").seconds == pytest.approx(steps / 100)
    assert row(report, "evaluation", "`predict`").seconds == pytest.approx(3.0 * steps / 200)
    first = 0.1 if scope == "run" else 0.0
    assert row(report, "epoch_start").seconds == pytest.approx(first + 0.6 * steps / 200)


def test_rounds_around_steps_that_python_feeds_are_steps() -> None:
    """A GAN's `for _ in range(500)`, stopped in its fifth second: 10 ms a step, `predict` in it."""
    run = Written()
    run.span("script", 0.0, 5.0)
    run.steps(1.0, 1.1)  # the first ones, before each of them is seen to predict
    run.span("evaluation", 1.1, 1.2, "predict", 33)
    run.steps(1.2, 5.0)
    for start in (2.0, 3.0, 4.0):
        run.span("evaluation", start, start + 0.5, "predict", 33)
    loop = own_loop(from_python=True, planned_rounds=500, steps=390)
    report = ledger(run, recording_of(loop), 5.0, "stopped")

    assert row(report, "steps").seconds == pytest.approx(5.0)
    assert row(report, "steps").count == 500
    assert report.scope == "run"
    assert report.epochs_planned is None
    predicted = row(report, "evaluation", "`predict`")
    assert predicted.seconds == pytest.approx(0.1 * 500 / 385, rel=0.01)
