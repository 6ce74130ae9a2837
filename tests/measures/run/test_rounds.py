"""Rounds of a `fit`, and runs that were ended from outside."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import pytest

from pipediag.measures.recorded_windows import Missing
from pipediag.measures.run.ledger import NOT_TO_ITS_END, RunBounds, measure_run
from pipediag.session.ledger import FURTHER_ROUNDS, Run
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.vocabulary import ScriptOutcome
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
)
from tests.recordings import make_recorded_operation

AFTER = "what the script does after this training"
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
    assert run.not_seen == [AFTER]


@pytest.mark.parametrize("whole", [1, 2, 3])
def test_what_the_first_round_alone_built_is_built_once(whole: int) -> None:
    assert rows(rounds(whole, planned_rounds=8))["compile", "the step of `fit`"] == 0.5


@pytest.mark.parametrize(("tested_s", "whole_s"), [(1.0, 9.0), (3.0, 9.0), (4.0, 10.0)])
def test_what_a_round_has_begun_is_not_all_to_come(tested_s: float, whole_s: float) -> None:
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


@pytest.mark.parametrize("planned", [None, 2])
def test_rounds_that_the_source_does_not_tell_of_are_named_as_missing(planned: int | None) -> None:
    run = rounds(2, planned_rounds=planned)

    assert rows(run)["evaluation", "`evaluate`"] == pytest.approx(6.0)
    assert run.epochs_planned == 2
    assert run.not_seen == [FURTHER_ROUNDS, AFTER]


def training(end_s: float | None, *, epochs: int = 2) -> Written:
    """Epochs of 3 s: half a second of waiting, 2 s of steps, half a second at their end. The fit
    and the script end at `end_s`; both are cut off where that is None."""
    run = Written()
    run.span("script", 0.0, end_s)
    run.span("fit", 1.0, end_s, "fit", FIT_LINE)
    for epoch in range(epochs):
        run.epoch(1.0 + 3.0 * epoch, 1.5 + 3.0 * epoch, 3.5 + 3.0 * epoch)
    return run


def outcome_of(
    run: Written,
    loop: RecordedLoop,
    end_s: float,
    outcome: ScriptOutcome,
    status: int | None = None,
) -> Run:
    found = measure_run(run.timeline, recording_of(loop), RunBounds(0, ns(end_s), outcome, status))
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

    assert (found.scope, found.projected_missing, found.not_seen) == ("run", None, [AFTER])
    assert (found.epochs_seen, found.epochs_planned) == (2.0, 100)
    assert rows(found) == {
        ("before_training", None): 1.0,
        ("epoch_start", None): 50.0,
        ("steps", None): 200.0,
        ("epoch_end", None): 50.0,
    }
    assert (found.total_s, found.projected_total_s) == (pytest.approx(6.5), pytest.approx(301.0))


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("raised", 1), ("killed", -signal.SIGKILL), ("killed", -signal.SIGSEGV)],
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


def test_between_two_rounds_those_to_come_are_carried_on() -> None:
    run = training(7.0)
    run.timeline.spans[0] = replace(run.timeline.spans[0], end_ns=None)
    run.span("evaluation", 7.0, None, "evaluate", 30)
    found = outcome_of(run, fit_loop(epochs=2, planned_rounds=5), 9.0, "timed-out")

    assert found.epochs_planned == 10
    assert rows(found)["steps", None] == pytest.approx(20.0)
    assert rows(found)["evaluation", "`evaluate`"] == pytest.approx(10.0)


@pytest.mark.parametrize(("after_s", "carried_on"), [(3.0, True), (3.1, False)])
def test_a_loop_that_is_left_for_longer_than_between_its_epochs_is_over(
    after_s: float, carried_on: bool
) -> None:
    run = Written()
    run.span("script", 0.0, None)
    run.epoch(0.0, 1.0, 3.0)
    run.epoch(4.0, 5.0, 7.0)
    root = make_recorded_operation("op3", "batch", cardinality=200)
    recording = recording_of(own_loop(planned_rounds=10, iterators=2), operations=[root])
    found = ledger(run, recording, 7.0 + after_s, "timed-out")

    assert (found.projected_total_s is not None) == carried_on


@pytest.mark.parametrize(("test_s", "carried_on"), [(2.0, True), (60.0, False)])
def test_rounds_that_are_left_for_longer_than_between_them_are_over(
    test_s: float, carried_on: bool
) -> None:
    """As a `fit` of one epoch in a loop of a hundred that breaks off."""
    run = Written()
    run.span("script", 0.0, None)
    for begun in (1.0, 5.0):
        run.span("fit", begun, begun + 3.0, "fit", FIT_LINE)
        run.epoch(begun, begun + 0.5, begun + 2.5)
    run.span("evaluation", 8.0, None, "evaluate", 30)
    loop = fit_loop(epochs=1, planned_rounds=100, iterators=2)
    found = ledger(run, recording_of(loop), 8.0 + test_s, "timed-out")

    assert (found.projected_total_s is not None) == carried_on
    assert found.projected_missing == (None if carried_on else NOT_TO_ITS_END)
