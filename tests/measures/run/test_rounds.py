"""A training within a loop of the script's, carried on to the last round of that loop."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.session.ledger import BETWEEN_ROUNDS, FURTHER_ROUNDS, Run
from pipediag.session.recorded_loops import RecordedLoop
from tests.measures.run.runs import (
    FIT_LINE,
    Written,
    fit_loop,
    ledger,
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


@pytest.mark.parametrize("whole", [1, 2, 3])
def test_what_each_round_builds_is_built_in_those_to_come(whole: int) -> None:
    run = rounds(whole, anew=True, planned_rounds=8)

    assert rows(run)["compile", "the step of `fit`"] == pytest.approx(8 * 0.5)
    assert row(run, "compile", "the step of `fit`").count == 8


def test_of_a_first_round_its_training_is_known() -> None:
    run = rounds(0, planned_rounds=4)

    assert rows(run)["steps", None] == pytest.approx(4 * 4.0)
    assert ("evaluation", "`evaluate`") not in rows(run)
    assert run.epochs_planned == 8
    assert BETWEEN_ROUNDS in run.not_seen


def test_an_evaluation_that_was_stopped_is_in_each_round_for_no_less() -> None:
    run = Written()
    run.span("script", 0.0, 8.0)
    run.span("fit", 0.0, 3.0, "fit", FIT_LINE)
    run.epoch(0.5, 1.0, 3.0)
    run.span("evaluation", 3.0, 8.0, "evaluate", TESTED)
    loop = fit_loop(epochs=1, planned_rounds=6)
    found = ledger(run, recording_of(loop), 8.0, "stopped")

    assert rows(found)["evaluation", "`evaluate`"] == pytest.approx(6 * 5.0)
    assert row(found, "evaluation", "`evaluate`").count == 6
    assert found.not_seen[-2:] == [BETWEEN_ROUNDS, AFTER]


def test_in_the_last_round_nothing_more_comes_but_what_follows_its_training() -> None:
    run = rounds(2, planned_rounds=3)

    assert rows(run)["steps", None] == pytest.approx(3 * 4.0)
    assert rows(run)["evaluation", "`evaluate`"] == pytest.approx(3 * 3.0)


def test_of_few_rounds_those_to_come_are_a_tenth_in_doubt() -> None:
    run = rounds(2, planned_rounds=6)

    tested = row(run, "evaluation", "`evaluate`")
    others = run.whole_s - 18.0
    # 6 s were seen, and 12 s are to come.
    assert tested.seconds == pytest.approx(18.0)
    assert tested.ci95_percent == pytest.approx(
        (100 * 16.8 / (16.8 + others), 100 * 19.2 / (19.2 + others))
    )


def test_several_rounds_tell_how_far_those_to_come_may_be_off() -> None:
    run = Written()
    run.span("script", 0.0, 43.0)
    for number, tested_s in enumerate((3.0, 2.0, 4.0, 6.0, None)):
        begun = 10.0 * number
        run.span("fit", begun, begun + 3.0, "fit", FIT_LINE)
        run.epoch(begun + 0.5, begun + 1.0, begun + 3.0)
        if tested_s is not None:
            run.span("evaluation", begun + 3.0, begun + 3.0 + tested_s, "evaluate", TESTED)
    loop = fit_loop(epochs=1, iterators=5, planned_rounds=14)
    found = ledger(run, recording_of(loop), 43.0, "stopped")
    tested = row(found, "evaluation", "`evaluate`")

    # 15 s were seen; ten are to come, of 4 s on the average of the last three.
    assert tested.seconds == pytest.approx(55.0)
    assert tested.ci95_percent is not None
    low, high = tested.ci95_percent
    others = found.whole_s - 55.0
    assert 100 * 35.0 / (35.0 + others) <= low < 100 * 50.0 / (50.0 + others)
    assert 100 * 60.0 / (60.0 + others) < high <= 100 * 75.0 / (75.0 + others)


def test_a_round_without_a_step_tells_that_the_one_before_it_was_whole() -> None:
    run = Written()
    run.span("script", 0.0, 10.0)
    run.span("fit", 0.0, 3.0, "fit", FIT_LINE)
    run.epoch(0.5, 1.0, 3.0)
    run.span("evaluation", 3.0, 9.0, "evaluate", TESTED)
    run.span("fit", 9.0, 10.0, "fit", FIT_LINE)
    loop = fit_loop(epochs=1, iterators=2, planned_rounds=6)
    found = rows(ledger(run, recording_of(loop), 10.0, "stopped"))

    assert found["evaluation", "`evaluate`"] == pytest.approx(6 * 6.0)
    assert found["steps", None] == pytest.approx(6 * 2.0)


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


def test_a_round_that_was_stopped_in_its_building_builds_once() -> None:
    run = Written()
    run.span("script", 0.0, 21.0)
    for number in range(3):
        begun = 10.0 * number
        last = number == 2
        run.span("fit", begun, begun + (1.0 if last else 6.0), "fit", FIT_LINE)
        run.span("tracing", begun, begun + (0.4 if last else 0.5), "one_step", FIT_LINE)
        if not last:
            run.epoch(begun + 0.5, begun + 1.0, begun + 6.0)
    loop = fit_loop(epochs=1, iterators=2, planned_rounds=8)
    found = ledger(run, recording_of(loop), 21.0, "stopped")

    assert rows(found)["compile", "the step of `fit`"] == pytest.approx(8 * 0.5)
    assert row(found, "compile", "the step of `fit`").count == 8


@pytest.mark.parametrize("planned", [None, 2])
def test_rounds_that_the_source_does_not_tell_of_are_named_as_missing(planned: int | None) -> None:
    run = rounds(2, planned_rounds=planned)

    assert rows(run)["evaluation", "`evaluate`"] == pytest.approx(6.0)
    assert run.epochs_planned == 2
    assert run.not_seen == [FURTHER_ROUNDS, AFTER]


def test_a_fit_within_no_loop_comes_once() -> None:
    run = rounds(0, planned_rounds=1)

    assert rows(run)["steps", None] == pytest.approx(4.0)
    assert run.not_seen[-1] == AFTER
    assert FURTHER_ROUNDS not in run.not_seen


def custom(loop: RecordedLoop, epochs: int) -> Run:
    """Epochs of 4 s: 1 s of waiting, 2 s of steps, 1 s behind them. Stopped in the last one."""
    run = Written()
    run.span("script", 0.0, 4.0 * epochs)
    for epoch in range(epochs):
        run.epoch(1.0 + 4.0 * epoch, 2.0 + 4.0 * epoch, 4.0 + 4.0 * epoch)
    root = make_recorded_operation("op3", "batch", cardinality=200)
    return ledger(run, recording_of(loop, operations=[root]), 4.0 * epochs, "stopped")


def test_epochs_of_a_loop_of_the_scripts_own_are_the_rounds_around_it() -> None:
    run = custom(own_loop(planned_rounds=10, iterators=3), 3)

    assert (run.scope, run.epochs_planned) == ("run", 10)
    assert rows(run) == {
        ("before_training", None): 1.0,
        ("epoch_start", None): 10.0,
        ("steps", None): 20.0,
        ("epoch_end", None): 10.0,
    }


def test_more_epochs_than_the_source_tells_of_are_told_by_one() -> None:
    assert custom(own_loop(planned_rounds=2, iterators=3), 3).scope == "epoch"
