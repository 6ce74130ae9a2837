"""What is known of the starts of later epochs, by their ends or by the first start alone."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.run import (
    comes_again,
    first_batch_percent,
    later_starts_s,
    long_percent,
    steps_beside_percent,
    time_of_epochs,
)
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_loop, make_loop_time, make_session
from tests.ledgers import make_part, make_run
from tests.records import make_operation, make_steps
from tests.rules.sessions import batch, session_of, source

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
        loops=[make_loop(time=make_loop_time(epoch_ends_seen=0, first_batches_s=0.0))],
        steps=make_steps(fill_ms=fill_ms),
        run=make_run(starts, whole_s=64.0, **run),
    )


def test_a_fill_comes_again_with_each_epoch() -> None:
    session = in_the_first_epoch()

    time = time_of_epochs(session)
    assert time is not None
    assert (time.basis, time.epoch_ends_seen, time.first_batch_ms) == ("projected", 0, 2000.0)
    assert (time.first_batches_s, time.steps_s, time.total_s) == (14.0, 48.0, 62.0)
    assert first_batch_percent(session) == pytest.approx(100.0 * 14 / 62)
    assert steps_beside_percent(session) == pytest.approx(100.0 * 48 / 62)
    assert later_starts_s(session) == 14.0


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
        in_the_first_epoch().model_copy(update={"run": None}),
        in_the_first_epoch(*chain(make_operation("repeat", "repeat"))),
    ],
    ids=[
        "no shuffle",
        "the map runs on",
        "read from a cache",
        "a map behind it is as slow",
        "nothing costly",
        "the start of a pipeline",
        "not measured",
        "one epoch",
        "epochs that nobody counted",
        "epochs unknown",
        "no ledger",
        "a repeat behind it",
    ],
)
def test_of_other_first_waits_nothing_follows(session: Session) -> None:
    assert time_of_epochs(session) is None
    assert first_batch_percent(session) == 0.0
    assert steps_beside_percent(session) is None
    assert later_starts_s(session) is None


def test_a_cache_above_the_map_keeps_none_of_its_work() -> None:
    above = make_operation("cache", "cache", **RUN_OUT)
    costly = make_operation("map", "map", **RUN_OUT)
    session = in_the_first_epoch(source(**RUN_OUT), above, costly, shuffle(), batch())

    found = comes_again(session)
    assert found is not None
    assert found.id == "shuffle"


def test_an_end_that_was_seen_tells_more() -> None:
    time = make_loop_time(total_s=20.0, first_batches_s=5.0, steps_s=8.0)
    session = in_the_first_epoch().model_copy(update={"loops": [make_loop(time=time)]})

    assert time_of_epochs(session) == time
    assert first_batch_percent(session) == 25.0
    assert steps_beside_percent(session) == 40.0


@pytest.mark.parametrize(("first_batches_s", "percent"), [(5.0, 5.0), (4.9, None)])
def test_waits_for_first_batches_are_spoken_of_from_a_twentieth_of_the_loop_on(
    first_batches_s: float, percent: float | None
) -> None:
    time = make_loop_time(total_s=100.0, first_batches_s=first_batches_s)

    assert long_percent(make_session(loops=[make_loop(time=time)])) == percent


def test_of_a_loop_without_a_second_no_part_is_told() -> None:
    session = make_session(loops=[make_loop(time=make_loop_time(total_s=0.0))])

    assert first_batch_percent(session) == 0.0
    assert steps_beside_percent(session) is None
