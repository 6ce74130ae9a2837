from __future__ import annotations

import pytest

from pipediag.facts.run import fills_a_shuffle, holds_all, seen_time, steps_percent
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from tests.factories import make_loop, make_loop_time, make_session
from tests.records import make_operation
from tests.rules.sessions import batch, session_of, source


def test_what_steps_explain_is_of_the_whole_time_of_a_loop() -> None:
    loop = make_loop(time=make_loop_time(total_s=20.0, steps_s=8.0))

    assert steps_percent(loop) == 40.0


@pytest.mark.parametrize(
    "loop",
    [None, make_loop(time=None), make_loop(time=make_loop_time(total_s=0.0))],
    ids=["no loop", "no time", "no second"],
)
def test_of_a_loop_whose_time_is_not_known_nothing_is_told(loop: Loop | None) -> None:
    assert steps_percent(loop) is None


def test_a_loops_time_is_seen_from_the_first_end_of_an_epoch_on() -> None:
    time = make_loop_time(epoch_ends_seen=1)

    assert seen_time(make_session(loops=[make_loop(time=time)])) == time
    unseen = make_loop_time(epoch_ends_seen=0)
    assert seen_time(make_session(loops=[make_loop(time=unseen)])) is None
    assert seen_time(make_session(loops=[make_loop(time=None)])) is None
    assert seen_time(make_session(loops=[])) is None


def shuffled(**above: float | None) -> Session:
    return session_of(
        source(self_ms_per_step=above.get("source", 1.0)),
        make_operation("map", self_ms_per_step=above.get("map", 1.0)),
        make_operation("shuffle", "shuffle", self_ms_per_step=above.get("shuffle", 1.0)),
        batch(),
    )


def test_what_stands_above_a_shuffle_fills_it() -> None:
    session = shuffled()
    assert session.pipeline is not None
    first, mapped, shuffle, last = session.pipeline.ops

    assert fills_a_shuffle(session, first)
    assert fills_a_shuffle(session, mapped)
    assert not fills_a_shuffle(session, shuffle)
    assert not fills_a_shuffle(session, last)


@pytest.mark.parametrize(
    ("times", "holds"),
    [
        ({"source": None, "map": None}, True),
        ({"source": None}, False),
        ({}, False),
        ({"source": None, "map": None, "shuffle": None}, False),
    ],
    ids=["only the shuffle ran", "the map ran too", "all ran", "nothing was seen"],
)
def test_a_shuffle_holds_all_where_nothing_above_it_runs_any_more(
    times: dict[str, float | None], holds: bool
) -> None:
    session = shuffled(**times)
    assert session.pipeline is not None

    assert holds_all(session, session.pipeline.ops[2]) is holds


def test_a_shuffle_with_nothing_above_it_holds_nothing() -> None:
    alone = make_operation("shuffle", "shuffle", self_ms_per_step=1.0)

    assert not holds_all(session_of(alone), alone)
