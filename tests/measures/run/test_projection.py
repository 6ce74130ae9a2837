"""A training that was stopped or ended from outside, projected to its end, with its rounds."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import pytest

from pipediag.measures.run.ledger import NOT_TO_ITS_END, measure_run
from pipediag.measures.steps import Missing
from pipediag.session.ledger import (
    AFTERWARDS,
    AN_EPOCHS_END,
    COMES_ONCE,
    FURTHER_ROUNDS,
    MAY_END_SOONER,
    Run,
)
from pipediag.session.recorded_loops import RecordedBoundary, RecordedLoop
from pipediag.vocabulary import ScriptOutcome
from tests.measures.run.runs import (
    FIT_LINE,
    Written,
    ended,
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
    assert report.not_seen == [AFTERWARDS]

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


def test_a_run_that_a_callback_may_end_sooner_says_so() -> None:
    stops = fit_loop(epochs=10)
    stops.keras.deciding_callbacks.append("EarlyStopping")
    report = ledger(epochs_of_a_fit(3), recording_of(stops), 60.0, "stopped")
    assert report.not_seen == [AFTERWARDS, MAY_END_SOONER]


def test_epochs_that_end_where_the_data_does_have_fewer_steps() -> None:
    """As with `steps_per_epoch=199` of 200 batches: epochs of 199 and of 1 step, by turns."""
    loop = fit_loop(epochs=10, steps_per_epoch=199, planned_steps=1000)
    report = ledger(epochs_of_a_fit(3), recording_of(loop), 60.0, "stopped")
    assert (report.epochs_planned, row(report, "steps").count) == (10, 1000)


def test_an_end_within_trials_is_no_end_that_was_seen() -> None:
    run = epochs_of_a_fit(1)
    # From the first epoch's last steps to the second one's first batch.
    run.span("aside", 7.0, 10.4)
    report = ledger(run, recording_of(fit_loop(epochs=10)), 60.0, "stopped")
    assert report.not_seen == [AN_EPOCHS_END, AFTERWARDS]
    assert not any(part.part == "evaluation" for part in report.parts)


def test_evaluations_are_counted_at_the_ends_that_stand_for_others() -> None:
    """Two ends were seen, and pipediag worked in the second one."""
    run = epochs_of_a_fit(2)
    run.span("aside", 13.0, 14.0)
    report = ledger(run, recording_of(fit_loop(epochs=10)), 60.0, "stopped")
    assert row(report, "evaluation", "validation in `fit`").seconds == pytest.approx(5.0)
    assert row(report, "evaluation", "validation in `fit`").count == 10


def test_an_epoch_of_unknown_length_has_the_steps_of_the_first_that_ended() -> None:
    """Its epochs took 2 s, of which the first one may have filled a cache."""
    loop = fit_loop(epochs=10, steps_per_epoch=None, epoch_steps=150)
    report = ledger(epochs_of_a_fit(1), recording_of(loop), 60.0, "stopped")
    assert row(report, "steps").count == 1500

    unknown = fit_loop(epochs=10, steps_per_epoch=None)
    report = ledger(epochs_of_a_fit(1), recording_of(unknown), 60.0, "stopped")
    assert row(report, "steps").count == 2000


@pytest.mark.parametrize(
    ("ends", "kind", "sure"), [(0, "map", False), (0, "shuffle", True), (1, "map", True)]
)
def test_waits_of_later_epochs_may_be_none_where_none_was_seen(
    ends: int, kind: str, sure: bool
) -> None:
    """What a shuffle takes to fill comes again."""
    root = make_recorded_operation("op3", kind)
    recording = recording_of(fit_loop(epochs=10), operations=[root])
    report = ledger(epochs_of_a_fit(ends), recording, 60.0, "stopped")

    starts = row(report, "epoch_start")
    assert (starts.ci95_percent[0] > starts.percent / 2.0) == sure


def test_waits_within_calls_are_carried_on() -> None:
    run = Written()
    run.span("script", 0.0, 9.0)
    run.span("fit", 0.0, 9.0, "fit", FIT_LINE)
    run.steps(1.0, 4.0)
    run.span("first_call", 1.0, 2.5, "one_step", FIT_LINE)
    run.steps(5.0, 9.0)
    boundaries = [RecordedBoundary(ns(4), ns(5), None, ns(0.31))]
    loop = fit_loop(epochs=10, fill_ns=ns(0.25), epoch_boundaries=boundaries)

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
    assert (report.epochs_seen, report.epochs_planned) == (4.0, 6)


def custom(ends: int) -> Written:
    """A loop of the script's own; 0.8 s of each second between its epochs is spent at line 40."""
    run = Written()
    run.span("script", 0.0, 4.0 + 4.0 * ends)
    run.epochs(ends + 1, 1.0, 1.0, 2.0, 1.0)
    for end in range(ends):
        run.saw(4.0 + 4.0 * end, 5.0 + 4.0 * end, seen(40, 0.8))
    return run


def test_without_a_known_end_it_is_an_epoch_where_its_length_is_known() -> None:
    root = make_recorded_operation("op3", "batch", cardinality=200)
    recording = recording_of(own_loop(iterators=4, steps=800), operations=[root])
    report = ledger(custom(3), recording, 60.0, "stopped")

    assert rows(report) == {
        ("epoch_start", None): 1.0,
        ("steps", None): 2.0,
        ("epoch_end", "the script's own line"): 0.8,
        ("epoch_end", None): 0.2,
    }
    assert report.scope == "epoch"
    assert report.projected_missing is not None
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


@pytest.mark.parametrize(("planned", "steps"), [(5, 500), (None, 100)])
def test_a_loop_that_leaves_its_epochs_early_has_the_steps_of_those_it_left(
    planned: int | None, steps: int
) -> None:
    """Stopped in the middle of the third epoch of 100 steps, by a `break`, of data of 10,000."""
    run = Written()
    run.span("script", 0.0, 3.5)
    for asked_s, over_s in ((0.0, 1.1), (1.2, 2.3), (2.9, 3.5)):
        run.epoch(asked_s, asked_s + 0.1, over_s)
    root = make_recorded_operation("op3", "batch", cardinality=10_000)
    loop = own_loop(planned_rounds=planned, iterators=3, steps=250)
    report = ledger(run, recording_of(loop, operations=[root]), 3.5, "stopped")

    assert report.scope == ("run" if planned else "epoch")
    assert row(report, "steps").count == steps
    assert row(report, "steps").seconds == pytest.approx(steps / 100)


def test_epochs_that_take_longer_than_their_steady_steps_are_carried_on_as_they_were() -> None:
    run = Written()
    run.span("script", 0.0, 13.0)
    run.span("fit", 0.0, 13.0, "fit", FIT_LINE)
    run.epochs(4, 0.0, 0.1, 2.8, 0.1)
    run.epoch(12.0, 12.1, 13.0)
    report = ledger(run, recording_of(fit_loop(epochs=10)), 13.0, "stopped")

    # 2.8 s an epoch where 200 steady steps take 2.0: their last steps wait for threads to go.
    assert row(report, "steps").seconds == pytest.approx(28.0)
    assert row(report, "steps").count == 2000
    assert row(report, "epoch_start").seconds == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("first_s", "rounds", "steps_s"),
    [
        (30.0, 1, 30.0 + 19 * 2.0),
        (2.3, 1, 20 * 2.0),  # no more than epochs differ
        (30.0, 3, 30.0 + 59 * 2.0),  # in later rounds, the files are in memory
    ],
)
def test_what_a_slow_first_epoch_took_more_comes_once(
    first_s: float, rounds: int, steps_s: float
) -> None:
    """As it reads files that are not in memory yet."""
    run = Written()
    run.span("script", 0.0, None)
    run.span("fit", 0.0, None, "fit", FIT_LINE)
    start_s = 0.0
    for took_s in (first_s, 2.0, 2.0, 1.0):
        run.epoch(start_s, start_s + 0.5, start_s + 0.5 + took_s)
        start_s += took_s + 1.0
    loop = fit_loop(epochs=20, iterators=4, planned_rounds=rounds)
    report = ledger(run, recording_of(loop), start_s - 0.5, "stopped")

    assert row(report, "steps").seconds == pytest.approx(steps_s)
    assert row(report, "steps").count == 20 * rounds * 200


@pytest.mark.parametrize(
    ("kind", "outcome", "steps_s"), [("map", "stopped", 20.0), ("cache", "finished", 7.0)]
)
def test_what_jax_compiles_in_a_first_epoch_is_no_part_of_its_slow_steps(
    kind: str, outcome: ScriptOutcome, steps_s: float
) -> None:
    run = Written()
    run.span("script", 0.0, None)
    run.span("fit", 0.0, None, "fit", FIT_LINE)
    start_s = 0.0
    for took_s in (8.0, 2.0, 2.0, 1.0):
        run.epoch(start_s, start_s + 0.5, start_s + 0.5 + took_s)
        start_s += took_s + 1.0
    loop = fit_loop(epochs=10, iterators=4, steps=700, first_step_ns=ns(6.0))
    recording = recording_of(loop, operations=[make_recorded_operation("op3", kind)])
    environment = replace(recording.environment, keras_backend="jax")
    report = ledger(run, replace(recording, environment=environment), start_s - 0.5, outcome)

    assert row(report, "compile", "the step of `fit`").seconds == pytest.approx(5.99)
    assert row(report, "steps").seconds == pytest.approx(steps_s, abs=0.1)


@pytest.mark.parametrize("built", [False, True])
def test_a_wait_for_a_first_batch_that_is_in_no_step_is_not_taken_off_a_slow_first_epoch(
    built: bool,
) -> None:
    """Its steps ask for their batches themselves, for the first one perhaps as they are built."""
    run = Written()
    run.span("script", 0.0, None)
    now_s = 0.0
    for waited_s, took_s in ((3.0, 7.0), (0.0, 2.0), (0.0, 2.0), (0.0, 1.0)):
        run.span("iterator", now_s, now_s + 0.5, "loop1")
        run.steps(now_s + 0.5, now_s + 0.5 + waited_s + took_s)
        if built and waited_s:
            run.span("first_call", now_s + 0.5, now_s + 0.5 + waited_s, "step", 40)
        now_s += 1.0 + waited_s + took_s
    loop = own_loop(planned_rounds=10, iterators=4, steps=700, data_steps=200, fill_ns=ns(3.0))
    report = ledger(run, recording_of(loop), now_s - 0.5, "stopped")

    assert row(report, "steps").seconds == pytest.approx(7.0 + 9 * 2.0, abs=0.1)


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


def test_an_evaluation_in_the_middle_of_each_epoch_ends_none() -> None:
    """Ten epochs of 1,000 steps of 10 ms, a validation of 1 s in the middle of each; stopped in the
    third one's second half."""
    run = Written()
    run.span("script", 0.0, 29.0)
    for half, start_s in enumerate((0.0, 6.0, 11.0, 17.0, 22.0, 28.0)):
        over_s = start_s + (5.0 if half < 5 else 1.0)
        run.epoch(start_s, start_s, over_s)
        if half % 2 == 0:
            run.span("evaluation", over_s, over_s + 1.0, "evaluate", 33)
    root = make_recorded_operation("op3", "batch", cardinality=1000)
    loop = own_loop(planned_rounds=10, iterators=3, steps=2600, fill_ns=0)
    report = ledger(run, recording_of(loop, operations=[root]), 29.0, "stopped")

    assert row(report, "steps").seconds == pytest.approx(100.0)
    # Three in 26 s.
    assert row(report, "evaluation", "`evaluate`").seconds == pytest.approx(3.0 / 26.0 * 100.0)


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


TESTED = 30


def rounds(whole: int, *, anew: bool = False, **overrides: Any) -> Run:
    """Rounds of 10 s: the first `fit` builds for 1 s, or each does; its two epochs wait for 0.5 s,
    have steps of 2 s and end after 0.5 s; `evaluate` takes 3 s. Stopped in an epoch's midst."""
    run = Written()
    run.span("script", 0.0, 10.0 * whole + 4.0)
    for number in range(whole + 1):
        begun = 10.0 * number + 0.5
        last = number == whole
        run.span("fit", begun, begun + (3.5 if last else 6.5), "fit", FIT_LINE)
        if anew or number == 0:
            run.span("tracing", begun, begun + 0.5, "one_step", FIT_LINE)
        run.epoch(begun + 0.5, begun + 1.0, begun + 3.0)
        if not last:
            run.epoch(begun + 3.5, begun + 4.0, begun + 6.0)
            run.span("evaluation", begun + 6.5, begun + 9.5, "evaluate", TESTED)
    loop = fit_loop(epochs=2, iterators=whole + 1, **overrides)
    return ledger(run, recording_of(loop), 10.0 * whole + 4.0, "stopped")


def test_what_a_round_holds_comes_as_often_as_the_source_says() -> None:
    run = rounds(2, planned_rounds=6)
    found = rows(run)

    assert found["steps", None] == pytest.approx(6 * 4.0)
    assert found["epoch_start", None] == pytest.approx(6 * 1.0)
    # The one that follows the training which was stopped is still to come, too.
    assert found["evaluation", "`evaluate`"] == pytest.approx(6 * 3.0)
    assert row(run, "evaluation", "`evaluate`").count == 6
    assert row(run, "evaluation", "`evaluate`").basis == "projected"
    assert (run.epochs_planned, run.epochs_seen) == (12, pytest.approx(5.0))
    assert run.not_seen == [AFTERWARDS]


@pytest.mark.parametrize("whole", [1, 2, 3])
def test_what_the_first_round_alone_built_is_built_once(whole: int) -> None:
    assert rows(rounds(whole, planned_rounds=8))["compile", "the step of `fit`"] == 0.5


@pytest.mark.parametrize(("tested_s", "whole_s"), [(1.0, 9.0), (3.0, 9.0), (4.0, 10.0)])
def test_a_round_that_was_cut_short_takes_what_the_others_took(
    tested_s: float, whole_s: float
) -> None:
    run = Written()
    for number in range(3):
        begun = 10.0 * number
        run.span("fit", begun, begun + 3.0, "fit", FIT_LINE)
        run.epoch(begun + 0.5, begun + 1.0, begun + 3.0)
        took_s = tested_s if number == 2 else 3.0
        run.span("evaluation", begun + 4.0, begun + 4.0 + took_s, "evaluate", TESTED)
    end_s = 24.0 + tested_s
    run.span("script", 0.0, end_s)
    found = ledger(
        run, recording_of(fit_loop(epochs=1, iterators=3, planned_rounds=3)), end_s, "stopped"
    )

    assert rows(found)["evaluation", "`evaluate`"] == pytest.approx(whole_s)
    assert row(found, "evaluation", "`evaluate`").count == 3


@pytest.mark.parametrize(("whole", "planned"), [(0, None), (2, None), (2, 2)])
def test_rounds_that_the_source_does_not_tell_of_are_named_as_missing(
    whole: int, planned: int | None
) -> None:
    run = rounds(whole, planned_rounds=planned)

    assert rows(run).get(("evaluation", "`evaluate`"), 0.0) == pytest.approx(3.0 * whole)
    assert (run.epochs_planned, run.epochs_seen) == (2 * whole + 2, 2 * whole + 1)
    assert run.not_seen == [*([] if whole else [AN_EPOCHS_END]), FURTHER_ROUNDS, AFTERWARDS]


def training(end_s: float | None, *, epochs: int = 2) -> Written:
    """Epochs of 3 s: half a second of waiting, 2 s of steps, half a second at their end. The fit
    and the script end at `end_s`; both are cut off where that is None."""
    run = Written()
    run.span("script", 0.0, end_s)
    run.span("fit", 1.0, end_s, "fit", FIT_LINE)
    run.epochs(epochs, 1.0, 0.5, 2.0, 0.5)
    return run


def outcome_of(
    run: Written,
    loop: RecordedLoop,
    end_s: float,
    outcome: ScriptOutcome,
    status: int | None = None,
) -> Run:
    found = measure_run(run.timeline, recording_of(loop), ended(0, ns(end_s), outcome, status))
    assert not isinstance(found, Missing)
    return found


@pytest.mark.parametrize(
    ("outcome", "status", "end_s"),
    [
        ("interrupted", -signal.SIGINT, 6.5),
        ("timed-out", None, None),
        ("killed", -signal.SIGTERM, None),
    ],
)
def test_a_training_that_was_ended_is_carried_on_to_its_plan(
    outcome: ScriptOutcome, status: int | None, end_s: float | None
) -> None:
    found = outcome_of(training(end_s), fit_loop(epochs=100), 6.5, outcome, status)

    assert (found.scope, found.projected_missing, found.not_seen) == ("run", None, [AFTERWARDS])
    assert (found.epochs_seen, found.epochs_planned) == (2.0, 100)
    assert rows(found) == {
        ("before_training", None): 1.0,
        ("epoch_start", None): 50.0,
        ("steps", None): 200.0,
        ("epoch_end", None): 50.0,
    }
    assert (found.total_s, found.projected_total_s) == (pytest.approx(6.5), pytest.approx(301.0))


@pytest.mark.parametrize(
    ("outcome", "status"), [("raised", 1), ("killed", -signal.SIGKILL), ("killed", -signal.SIGSEGV)]
)
def test_one_that_failed_took_what_it_took(outcome: ScriptOutcome, status: int) -> None:
    found = outcome_of(training(None), fit_loop(epochs=100), 6.5, outcome, status)

    assert (found.projected_total_s, found.not_seen) == (None, [])
    assert found.projected_missing == NOT_TO_ITS_END
    assert found.epochs_seen == 2.0


@pytest.mark.parametrize(("script_s", "carried_on"), [(8.0, True), (8.1, False), (None, False)])
def test_a_fit_that_had_returned_is_not_carried_on(
    script_s: float | None, carried_on: bool
) -> None:
    """As one that its EarlyStopping ended, with a test behind it; what an exception passes on its
    way out of the script takes no second."""
    run = training(7.0)
    run.timeline.spans[0] = replace(
        run.timeline.spans[0], end_ns=None if script_s is None else ns(script_s)
    )
    found = outcome_of(run, fit_loop(epochs=100), 9.0, "interrupted")

    assert (found.projected_total_s is not None) == carried_on
    assert found.projected_missing == (None if carried_on else NOT_TO_ITS_END)
