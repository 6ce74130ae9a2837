"""Trainings of which the user says how many epochs they have."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.measures.run.ledger import told_as_given, with_given_epochs
from pipediag.session.ledger import Run
from pipediag.session.recorded_loops import RecordedLoop
from tests.measures.run.runs import FIT_LINE, Written, fit_loop, ledger, own_loop, recording_of, row
from tests.recordings import make_recorded_operation

GIVEN = 20


def of_unknown_length(ends: int) -> Written:
    """Epochs of a second's wait, 200 steps of 10 ms, and a second at their end."""
    run = Written()
    run.span("script", 0.0, 4.0 + 4.0 * ends)
    for epoch in range(ends + 1):
        asked = 1.0 + 4.0 * epoch
        run.epoch(asked, asked + 1.0, asked + 3.0)
    return run


def told(
    written: Written, loop: RecordedLoop, cardinality: int | None = 200, **options: Any
) -> tuple[Run, str | None]:
    root = make_recorded_operation("op3", "batch", cardinality=cardinality)
    recording = recording_of(loop, operations=[root])
    given = with_given_epochs(recording, GIVEN)
    run = ledger(written, given, 16.0, options.get("outcome", "stopped"))
    return told_as_given(run, recording, GIVEN)


@pytest.mark.parametrize("cardinality", [200, None])
def test_they_are_carried_on_to(cardinality: int | None) -> None:
    run, note = told(of_unknown_length(3), own_loop(iterators=4), cardinality)

    assert (run.scope, run.epochs_planned, run.epochs_given, note) == ("run", GIVEN, True, None)
    assert row(run, "steps").seconds == pytest.approx(2.0 * GIVEN)
    assert row(run, "before_training").seconds == pytest.approx(1.0)


def test_what_the_script_tells_goes_before_it() -> None:
    loop = own_loop(iterators=4, planned_rounds=10)
    run, note = told(of_unknown_length(3), loop)

    assert (run.epochs_planned, run.epochs_given) == (10, False)
    assert note is not None


def test_a_fit_has_several_in_each_round() -> None:
    run = Written()
    run.span("script", 0.0, 16.0)
    for start in (0.0, 10.0):
        run.span("fit", start, start + 6.0, "fit", FIT_LINE)
        run.epoch(start, start + 0.5, start + 2.5)
        run.epoch(start + 3.0, start + 3.5, start + 5.5)
    found, note = told(run, fit_loop(epochs=2, iterators=2))

    assert (found.epochs_planned, found.epochs_given, note) == (GIVEN, True, None)
    assert row(found, "steps").seconds == pytest.approx(2.0 * GIVEN)


def test_a_script_that_was_seen_to_its_end_needs_none() -> None:
    run, note = told(of_unknown_length(3), own_loop(iterators=4), outcome="finished")

    assert (run.projected_total_s, run.epochs_given) == (None, False)
    assert note is not None


def test_without_the_length_of_an_epoch_nothing_follows() -> None:
    run, note = told(of_unknown_length(0), own_loop(), None)

    assert (run.scope, run.epochs_given) == ("1000_steps", False)
    assert note is not None


def test_where_python_feeds_the_steps_a_round_is_no_epoch() -> None:
    fed = own_loop(from_python=True)
    assert with_given_epochs(recording_of(fed), GIVEN).loops == [fed]
