"""Where a run's time goes: figures small enough to check."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts import run as facts
from pipediag.session.model import Session
from tests import factories, records


def session(**overrides: Any) -> Session:
    return factories.make_session(**{"run": factories.make_run(), **overrides})


def test_the_part_that_weighs_most_is_where() -> None:
    found = facts.where(session())

    assert found is not None
    assert (found.part, found.percent) == ("epoch_end", 50.0)
    assert found.row is not None
    assert found.row.line == 14


@pytest.mark.parametrize(("compute", "expected"), [(0.0, "steps"), (70.0, "epoch_end")])
def test_steps_weigh_as_much_as_of_them_is_not_computing(compute: float, expected: str) -> None:
    parts = [factories.make_part("steps", 14.0), factories.make_part("epoch_end", 6.0)]
    breakdown = records.make_breakdown(input_wait=100.0 - compute, device_compute=compute)

    found = facts.where(session(run=factories.make_run(parts=parts), breakdown=breakdown))

    assert found is not None
    assert found.part == expected


def test_a_part_under_a_fifth_of_the_run_is_not_where() -> None:
    parts = [factories.make_part("steps", 16.2), factories.make_part("evaluation", 3.8)]
    breakdown = records.make_breakdown(device_compute=100.0)

    found = facts.where(session(run=factories.make_run(parts=parts), breakdown=breakdown))

    assert found is not None
    assert found.part == "steps"


def test_start_up_and_exit_are_no_place_to_look() -> None:
    parts = [
        factories.make_part("startup", 7.0),
        factories.make_part("steps", 5.0),
        factories.make_part("after_training", 8.0, what="exit"),
    ]

    found = facts.where(session(run=factories.make_run(parts=parts)))

    assert found is not None
    assert found.part == "steps"


def test_what_the_script_does_after_its_training_is_one_without_the_exit() -> None:
    parts = [
        factories.make_part("steps", 6.0),
        factories.make_part("after_training", 5.0, what="exit"),
        factories.make_part("after_training", 7.0, what="in `export`", line=40),
        factories.make_part("after_training", 2.0),
    ]

    found = facts.where(session(run=factories.make_run(parts=parts)))

    assert found is not None
    assert (found.part, found.percent) == ("after_training", 45.0)
    assert found.row is not None
    assert found.row.line == 40


def test_nothing_is_said_without_a_ledger_or_a_training() -> None:
    assert facts.where(session(run=None)) is None
    assert facts.where(session(loops=[])) is None


def test_a_place_goes_before_a_larger_rest() -> None:
    parts = [
        factories.make_part("before_training", 9.0),
        factories.make_part("before_training", 3.0, what="in `parse`", line=7),
    ]

    row = facts.costliest_row(factories.make_run(parts=parts), "before_training")

    assert row is not None
    assert row.line == 7


def test_a_fifth_of_the_run_is_enough_and_the_steps_have_their_own_share() -> None:
    computing = records.make_breakdown(device_compute=100.0)

    def found(evaluation_s: float) -> tuple[str, float]:
        parts = [
            factories.make_part("steps", 20.0 - evaluation_s),
            factories.make_part("evaluation", evaluation_s),
        ]
        run = factories.make_run(parts=parts)
        told = facts.where(session(run=run, breakdown=computing))
        assert told is not None
        return told.part, round(told.percent, 6)

    assert found(4.0) == ("evaluation", 20.0)
    assert found(3.9) == ("steps", 80.5)


def test_steps_of_which_nothing_is_known_weigh_all_they_take() -> None:
    parts = [factories.make_part("steps", 11.0), factories.make_part("epoch_end", 9.0)]

    found = facts.where(session(run=factories.make_run(parts=parts), breakdown=None))

    assert found is not None
    assert found.part == "steps"


def test_a_part_as_heavy_as_the_steps_leaves_them_the_verdict() -> None:
    parts = [factories.make_part("steps", 10.0), factories.make_part("epoch_end", 10.0)]

    found = facts.where(session(run=factories.make_run(parts=parts), breakdown=None))

    assert found is not None
    assert found.part == "steps"


@pytest.mark.parametrize(("least", "part"), [(19.0, "steps"), (33.0, "epoch_start")])
def test_a_part_is_where_only_if_clear_of_the_steps(least: float, part: str) -> None:
    """Of 100 s, the steps take 28 to 32 %."""
    starts = factories.make_part("epoch_start", 40.0)
    steps = factories.make_part("steps", 30.0)
    parts = [
        starts.model_copy(update={"ci95_percent": (least, 60.0)}),
        steps.model_copy(update={"ci95_percent": (28.0, 32.0)}),
        factories.make_part("startup", 30.0),
    ]

    found = facts.where(session(run=factories.make_run(parts=parts), breakdown=None))

    assert found is not None
    assert found.part == part
    assert (found.about_as_much is not None) == (part == "steps")


def test_an_interval_that_holds_the_limit_leaves_the_steps_their_verdict() -> None:
    starts = factories.make_part("epoch_start", 24.0)
    parts = [
        starts.model_copy(update={"ci95_percent": (17.5, 28.7)}),
        factories.make_part("steps", 16.0),
        factories.make_part("startup", 60.0),
    ]

    found = facts.where(session(run=factories.make_run(parts=parts), breakdown=None))

    assert found is not None
    assert found.part == "steps"
    assert found.about_as_much is not None
    assert found.about_as_much.part == "epoch_start"


def test_of_the_places_of_a_part_the_one_that_takes_most_is_its_row() -> None:
    parts = [
        factories.make_part("compile", 1.0, line=5),
        factories.make_part("compile", 3.0, line=7),
        factories.make_part("compile", 2.0, line=6),
        factories.make_part("epoch_end", 8.0, line=9),
    ]
    run = factories.make_run(parts=parts)

    row = facts.costliest_row(run, "compile")

    assert row is not None
    assert row.line == 7
    assert facts.costliest_row(run, "evaluation") is None


@pytest.mark.parametrize(("evaluation_s", "where"), [(5.01, "evaluation"), (4.99, "steps")])
def test_steps_weigh_what_the_device_leaves_idle_of_them(evaluation_s: float, where: str) -> None:
    """Of 10 s of steps, half."""
    parts = [
        factories.make_part("steps", 10.0),
        factories.make_part("evaluation", evaluation_s),
        factories.make_part("startup", 10.0 - evaluation_s),
    ]
    breakdown = records.make_breakdown(device_compute=50.0)

    found = facts.where(session(run=factories.make_run(parts=parts), breakdown=breakdown))

    assert found is not None
    assert found.part == where
