"""The epoch that fills a cache has a row of its own, on spans made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipediag.measures.run.ledger import WHAT
from pipediag.session.ledger import Run
from pipediag.session.recorded_operations import RecordedOperation
from pipediag.vocabulary import ScriptOutcome
from tests.measures.run.runs import Written, fit_loop, ledger, recording_of

OPERATIONS = [
    RecordedOperation("source", "from_tensor_slices", "source", "train.py", 3),
    RecordedOperation("cache", "cache", "cache", "train.py", 5, parent_ids=["source"]),
]


def epochs(
    lengths: Sequence[float],
    outcome: ScriptOutcome = "finished",
    root: str = "cache",
    kind: str = "cache",
    planned_steps: int | None = None,
    steps_per_epoch: int | None = None,
) -> Run:
    """A `fit` whose epochs take so many seconds, one second apart."""
    run, now = Written(), 2.0
    run.span("script", 1.0, 60.0)
    run.span("fit", 1.5, 59.0, "fit", 20)
    for length in lengths:
        run.span("steps", now, now + length, "loop1")
        now += length + 1.0
    loop = fit_loop(root_op_id=root)
    assert loop.keras is not None
    loop.keras.steps_per_epoch = steps_per_epoch
    loop.planned_steps = planned_steps
    operations = [OPERATIONS[0], replace(OPERATIONS[1], kind=kind)]
    return ledger(run, recording_of(loop, operations=operations), 60.0, outcome)


def fill(run: Run) -> list[tuple[float, int | None]]:
    return [(row.seconds, row.line) for row in run.parts if row.what == WHAT]


def test_what_the_first_epoch_took_longer_is_no_step_of_the_others() -> None:
    run = epochs([9.0, 2.0, 3.0, 1.0])

    assert fill(run) == [(pytest.approx(6.5), 5)]
    assert run.seconds_of("steps") == pytest.approx(15.0, abs=0.1)


@pytest.mark.parametrize(
    ("lengths", "root"),
    [([9.0], "cache"), ([2.9, 2.5, 2.5], "cache"), ([9.0, 2.0, 2.0], "source")],
)
def test_no_other_first_epoch_is_told_apart(lengths: list[float], root: str) -> None:
    assert fill(epochs(lengths, root=root)) == []


def test_a_snapshot_is_filled_once_as_well() -> None:
    assert fill(epochs([9.0, 2.0, 3.0, 1.0], kind="snapshot")) == [(pytest.approx(6.5), 5)]


def test_an_epoch_that_fills_a_cache_is_not_carried_on_to_all() -> None:
    """Five epochs of 300 steps, of which a part of the first was seen."""
    run = epochs([9.0], "stopped", planned_steps=1500, steps_per_epoch=300)
    assert run.scope == "1000_steps"
    assert run.projected_missing == (
        "It was stopped in the epoch that fills its cache, and how long those take that read it "
        "is not known: these are 1,000 steps of it."
    )
    other = epochs([9.0], "stopped", root="source", planned_steps=1500, steps_per_epoch=300)
    assert (other.scope, other.projected_missing) == ("run", None)
    assert epochs([9.0]).projected_missing is None


def test_it_comes_once_and_belongs_to_its_loop() -> None:
    [row] = [row for row in epochs([9.0, 2.0, 3.0, 1.0]).parts if row.what == WHAT]

    assert (row.part, row.loop_id, row.count) == ("steps", "loop1", 1)


def test_two_epochs_tell_it_apart_at_a_fifth_longer() -> None:
    assert fill(epochs([2.4, 2.0])) == [(pytest.approx(0.4), 5)]
    assert fill(epochs([2.39, 2.0])) == []
