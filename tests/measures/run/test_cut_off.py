"""Runs that were ended from outside: what was under way is carried on, as where it was stopped."""

from __future__ import annotations

import signal
from dataclasses import replace

import pytest

from pipediag.measures.recorded_windows import Missing
from pipediag.measures.run.ledger import NOT_TO_ITS_END, RunBounds, measure_run
from pipediag.session.ledger import Run
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
    rows,
)
from tests.recordings import make_recorded_operation

AFTER = "what the script does after this training"


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


def test_a_slow_first_epoch_is_not_what_the_others_are_carried_on_by() -> None:
    """The baseline lies in it: an epoch of 6,000 steps of 10 ms. All others take 5 s."""
    run = Written()
    run.span("script", 0.0, None)
    run.span("fit", 0.0, None, "fit", FIT_LINE)
    run.epoch(0.0, 0.5, 60.5)
    for epoch in range(5):
        run.epoch(61.0 + 6.0 * epoch, 61.5 + 6.0 * epoch, 66.5 + 6.0 * epoch)
    loop = fit_loop(epochs=20, steps_per_epoch=6000, steps=6 * 6000)
    found = outcome_of(run, loop, 97.5, "timed-out")

    assert found.epochs_planned == 20
    assert rows(found)["steps", None] <= 60.0 + 19 * 5.0


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("raised", 1), ("killed", -signal.SIGKILL), ("killed", -signal.SIGSEGV)],
)
def test_one_that_failed_took_what_it_took(outcome: ScriptOutcome, status: int) -> None:
    found = outcome_of(training(None), fit_loop(epochs=100), 6.5, outcome, status)

    assert (found.projected_total_s, found.not_seen) == (None, [])
    assert found.projected_missing == NOT_TO_ITS_END
    assert found.epochs_seen == 2.0


@pytest.mark.parametrize("outcome", ["finished", "exited", "hung-in-exit"])
def test_one_that_ended_by_itself_lacks_nothing(outcome: ScriptOutcome) -> None:
    found = outcome_of(training(6.5), fit_loop(epochs=100), 6.5, outcome, 0)
    assert (found.projected_total_s, found.projected_missing) == (None, None)


def test_without_a_measured_step_it_is_what_was_seen() -> None:
    recording = recording_of(fit_loop(elapsed_ns=0, steps=1), windows=[])
    found = ledger(training(None), recording, 6.5, "timed-out")
    assert (found.projected_total_s, found.projected_missing) == (None, NOT_TO_ITS_END)


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


@pytest.mark.parametrize(("test_s", "carried_on"), [(3.0, True), (60.0, False)])
@pytest.mark.parametrize("in_a_loop", [False, True])
def test_a_loop_whose_test_lasts_longer_than_its_validations_is_over(
    test_s: float, carried_on: bool, in_a_loop: bool
) -> None:
    """As one of a hundred rounds that breaks off at the second, cut off while it is tested."""
    run = Written()
    run.span("script", 0.0, None)
    run.epoch(0.0, 1.0, 3.0)
    run.span("evaluation", 3.0, 4.0, "evaluate", 40)
    run.epoch(4.0, 5.0, 7.0)
    loops = [own_loop(planned_rounds=100, iterators=2)]
    if in_a_loop:
        run.span("steps", 7.0, None, "loop2")
        loops.append(own_loop(id="loop2", line=50, role="evaluation"))
    else:
        run.span("evaluation", 7.0, None, "evaluate", 50)
    root = make_recorded_operation("op3", "batch", cardinality=200)
    found = ledger(run, recording_of(*loops, operations=[root]), 7.0 + test_s, "timed-out")

    assert (found.projected_total_s is not None) == carried_on


def test_a_loop_whose_next_epoch_waits_for_its_first_batch_goes_on() -> None:
    run = Written()
    run.span("script", 0.0, None)
    run.epoch(0.0, 1.0, 3.0)
    run.span("first_batch", 3.0, None, "loop1")
    root = make_recorded_operation("op3", "batch", cardinality=200)
    recording = recording_of(own_loop(planned_rounds=10, iterators=2), operations=[root])

    assert ledger(run, recording, 60.0, "timed-out").epochs_planned == 10


@pytest.mark.parametrize(("export_s", "carried_on"), [(1.0, True), (60.0, False)])
def test_a_loop_of_one_pass_is_over_behind_it(export_s: float, carried_on: bool) -> None:
    """As over a generator, whose length nothing tells."""
    run = Written()
    run.span("script", 0.0, None)
    run.epoch(0.0, 1.0, 3.0)
    found = ledger(run, recording_of(own_loop()), 3.0 + export_s, "timed-out")

    assert found.scope == ("1000_steps" if carried_on else "run")
    assert (found.projected_missing == NOT_TO_ITS_END) != carried_on


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


def test_of_a_loop_without_a_known_length_it_is_an_epoch() -> None:
    run = Written()
    run.span("script", 0.0, None)
    run.epoch(0.0, 1.0, 3.0)
    root = make_recorded_operation("op3", "batch", cardinality=200)
    found = ledger(run, recording_of(own_loop(), operations=[root]), 3.0, "interrupted")

    assert found.scope == "epoch"
    assert sum(one.seconds for one in found.seen) == pytest.approx(3.0)
