"""What the ledger says of the run."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts import run as facts
from pipediag.facts.run import (
    faster_loop,
    first_batch_percent,
    long_percent,
    loop_time,
    steps_beside_percent,
    time_of_epochs,
)
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.recording import Prediction
from tests import factories, records
from tests.factories import make_loop, make_session
from tests.ledgers import make_part, make_run, make_waits
from tests.records import make_operation, make_steps
from tests.rules.sessions import batch, session_of, source


def session(**overrides: Any) -> Session:
    return factories.make_session(**{"run": factories.make_run(), **overrides})


def shared(compute: float, **seconds: float) -> Session:
    """A run of these parts, whose steps compute for so much of their time."""
    parts = [factories.make_part(part, taken) for part, taken in seconds.items()]
    breakdown = records.make_breakdown(input_wait=100.0 - compute, device_compute=compute)
    return session(run=factories.make_run(parts=parts), breakdown=breakdown)


EXIT = factories.make_part("after_training", 8.0, what="exit")


@pytest.mark.parametrize(
    ("session", "part"),
    [
        (session(), "epoch_end"),
        (shared(0.0, steps=14.0, epoch_end=6.0), "steps"),
        (shared(70.0, steps=14.0, epoch_end=6.0), "epoch_end"),
        # Start-up and exit are no place to look.
        (shared(0.0, startup=15.0, steps=5.0), "steps"),
        (session(run=factories.make_run(parts=[factories.make_part("steps", 5.0), EXIT])), "steps"),
    ],
)
def test_the_part_that_weighs_most_is_where(session: Session, part: str) -> None:
    assert facts.where(session).part == part


@pytest.mark.parametrize(("least", "part"), [(19.0, "steps"), (33.0, "epoch_start")])
def test_a_part_is_where_only_if_clear_of_the_steps(least: float, part: str) -> None:
    """Of 100 s, the steps take 28 to 32 %."""
    starts = factories.make_part("epoch_start", 40.0)
    steps = factories.make_part("steps", 30.0)
    parts = [
        starts.but(ci95_percent=(least, 60.0)),
        steps.but(ci95_percent=(28.0, 32.0)),
        factories.make_part("startup", 30.0),
    ]

    found = facts.where(session(run=factories.make_run(parts=parts), breakdown=None))

    assert found.part == part


RUN_OUT: dict[str, Any] = {"self_ms_per_step": None, "elements": None}


def shuffle(**overrides: Any) -> Operation:
    return make_operation("shuffle", "shuffle", line=14, **overrides)


def chain(*behind: Operation, **map_: Any) -> list[Operation]:
    """A map that ran out before the first batch, and a shuffle that runs on."""
    costly = make_operation("map", "map", **{**RUN_OUT, **map_})
    return [source(**RUN_OUT), costly, shuffle(), batch(), *behind]


def in_the_first_epoch(
    *ops: Operation, fill_ms: float | None = 2000.0, count: int | None = 8, **run: Any
) -> Session:
    """Of 64 s, eight waits of which one was seen take 16 s; no epoch ended."""
    starts = make_part("epoch_start", 16.0, loop_id="loop_0", count=count, basis="projected")
    return session_of(
        *(ops or chain()),
        loops=[make_loop()],
        steps=make_steps(fill_ms=fill_ms),
        run=make_run(starts, whole_s=64.0, **run),
    )


@pytest.mark.parametrize(
    "session",
    [
        in_the_first_epoch(source(), batch()),
        in_the_first_epoch(*chain(self_ms_per_step=0.1, elements=32.0)),
        in_the_first_epoch(*chain(make_operation("cache", "cache"))),
        in_the_first_epoch(*chain(make_operation("behind", "map", self_ms_per_step=1500.0))),
        in_the_first_epoch(source(**RUN_OUT), shuffle(), batch()),
        in_the_first_epoch(fill_ms=499.0),
        in_the_first_epoch(fill_ms=None),
        in_the_first_epoch(count=1),
        in_the_first_epoch(count=None),
        in_the_first_epoch(scope="epoch"),
        in_the_first_epoch().but(run=None),
        in_the_first_epoch(*chain(make_operation("repeat", "repeat"))),
    ],
)
def test_of_other_first_waits_nothing_follows(session: Session) -> None:
    assert time_of_epochs(session) is None
    assert first_batch_percent(session) == 0.0
    assert steps_beside_percent(session) is None


@pytest.mark.parametrize(
    ("ops", "ends", "part"),
    [
        (chain(), 0, "epoch_start"),  # a shuffle that each epoch fills
        ([source(), batch()], 0, "steps"),
        ([source(), batch()], 3, "epoch_start"),
    ],
)
def test_first_waits_are_where_only_if_later_epochs_are_known_to_wait(
    ops: list[Operation], ends: int, part: str
) -> None:
    """Eight waits take 48 of 64 s."""
    starts = make_part("epoch_start", 48.0, loop_id="loop_0", count=8, ci95=(70.0, 80.0))
    run = make_run(starts, whole_s=64.0)
    session = in_the_first_epoch(*ops).but(run=run, loops=[make_loop(epoch_ends=ends)])
    assert facts.where(session).part == part


@pytest.mark.parametrize(("first_batches_s", "percent"), [(5.0, 5.0), (4.9, None)])
def test_waits_for_first_batches_are_spoken_of_from_a_twentieth_of_the_loop_on(
    first_batches_s: float, percent: float | None
) -> None:
    run = make_waits(first_batches_s, 95.0 - first_batches_s, 5.0, each_s=0.7)

    assert long_percent(make_session(run=run, loops=[make_loop(epoch_ends=7)])) == percent


def test_the_parts_of_a_loop_add_up_to_its_time() -> None:
    """Of 8 s in 400 steps of 10 ms, half is in slower ones; the first wait is no later epoch's."""
    loop = make_loop(epoch_ends=10)
    time = loop_time(make_session(run=make_waits(steps_s=8.0, count=400), loops=[loop]))

    assert (time.steps_s, time.slower_s, time.between_s) == (4.0, 4.0, 1.0)
    assert (time.first_batches_s, time.first_batch_ms) == pytest.approx((16.0, 1600.0))
    assert time.total_s == pytest.approx(25.0)
    assert loop_time(make_session(run=None)) is None


@pytest.mark.parametrize(("own_ms", "times"), [(200.0, 3.0), (400.0, 300.0)])
def test_an_evaluation_without_steady_steps_takes_what_was_seen_of_it(
    own_ms: float, times: float
) -> None:
    """300 ms a batch, and calls that take a 300th; no more than all of it can go."""
    loop = make_loop(role="validation", steps=11, elapsed_s=3.0)
    timed = Prediction("train.py", 8, 16, own_ms=[own_ms], calls=11)
    assert faster_loop(make_session(), loop, timed, 1.0 / 300.0) == pytest.approx(times, rel=0.01)


def test_what_is_called_in_each_training_step_shortens_the_step() -> None:
    session = make_session()
    own_ms = session.steps.mean_ms / 2.0
    timed = Prediction("train.py", 8, 16, own_ms=[own_ms], calls=100)
    loop = make_loop(role="training", steps=100)
    assert faster_loop(session, loop, timed, 0.0) == pytest.approx(2.0)
    assert faster_loop(session, make_loop(role="training", steps=1000), timed, 0.0) < 1.1
