"""Shuffle buffers that are slow to fill."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.rules.caching import MISSING_CACHE
from pipediag.rules.epoch_start import SLOW_SHUFFLE_FILL
from pipediag.rules.shuffling import smaller_buffer, smaller_size
from pipediag.session.edits import Insert, Move, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_keras, make_loop
from tests.ledgers import make_part, make_run, make_waits
from tests.records import make_breakdown, make_function, make_operation, make_steps
from tests.rules.sessions import (
    batch,
    cases,
    decided,
    decides,
    only,
    saved_s,
    session_of,
    source,
    tried,
)


def shuffle(size: int = 1000) -> Operation:
    return make_operation("shuffle", "shuffle", line=8, parameters={"buffer_size": size})


def slow_map(**overrides: Any) -> Operation:
    """0.25 ms an element: a buffer of 1000 takes 250 ms."""
    values: dict[str, Any] = {"elements": 32.0, "self_ms_per_step": 8.0}
    return make_operation("map", "map", **{**values, **overrides})


FREE = source(self_ms_per_step=0.0)
COSTS = source(self_ms_per_step=8.0)
NOTHING = {"self_ms_per_step": None}
GENERATOR = make_operation("gen", "from_generator", elements=32.0, self_ms_per_step=8.0)


def filling(
    *ops: Operation, fill_ms: float | None = 250.0, projected_s: float | None = 2.5
) -> Session:
    loop = make_loop(projected_s=projected_s, keras=make_keras(epochs=2))
    chain = ops or (FREE, slow_map(), shuffle())
    return session_of(*chain, batch(), steps=make_steps(fill_ms=fill_ms), loops=[loop])


ABOVE = (Move("shuffle", "source"),)
QUARTER = (SetParameters("shuffle", {"buffer_size": 256}),)


test_a_buffer_that_fills_with_costly_elements = decides(
    SLOW_SHUFFLE_FILL,
    {
        "a map": (filling(), ("fail", ABOVE)),
        "a generator": (filling(GENERATOR, shuffle()), ("fail", QUARTER)),
        "zipped": (filling(GENERATOR, shuffle(), make_operation("zip", "zip")), "fail"),
        "nothing costly": (filling(COSTS, shuffle()), ("informative", QUARTER)),
        # 250 ms of filling explain little of 5 s.
        "a slow start": (filling(fill_ms=5000.0), "pass"),
        "unmeasured": (
            filling(source(**NOTHING), slow_map(**NOTHING), shuffle()),
            ("informative", ABOVE),
        ),
        # In the one epoch that was seen: tf.data knows no costs of what has run out.
        "only the shuffle runs on": (
            filling(
                source(**NOTHING), slow_map(**NOTHING), shuffle(), fill_ms=500.0, projected_s=5.0
            ),
            ("fail", ABOVE),
        ),
    },
)


@pytest.mark.parametrize(
    ("size", "data", "of_batch", "edited"),
    [
        (4000, 10_000, 32, 400),
        # Eight batches of 100.
        (4000, 10_000, 100, 800),
        # A buffer holds no more than there is.
        (100_000, 6000, 32, 600),
        # Half of it saves too little to mix less for.
        (511, 10_000, 32, None),
        (512, 10_000, 32, 256),
        (4000, 10_000, None, None),
    ],
)
def test_how_much_smaller(size: int, data: int, of_batch: int | None, edited: int | None) -> None:
    behind = [] if of_batch is None else [batch(of_batch)]
    session = session_of(source(cardinality=data), shuffle(size), *behind)
    op = session.operation("shuffle")
    assert op is not None
    assert smaller_size(session, op) == edited
    assert (smaller_buffer(session, op, "rule") is None) == (edited is None)


# Waits that come with each epoch


def ran_out(**overrides: Any) -> Operation:
    values = {"elements": None, "self_ms_per_step": None, "element_bytes": 1000, "cardinality": 640}
    return make_operation("map", "map", function=make_function(), **{**values, **overrides})


EMPTY = source(elements=None, self_ms_per_step=None, cardinality=640)
HOLDS_ALL = make_operation(
    "shuffle", "shuffle", line=14, self_ms_per_step=0.1, parameters={"buffer_size": 640}
)


def waiting(*ops: Operation, ends: int = 4, **time: Any) -> Session:
    """The map has run out before the first batch; the steps wait for nothing."""
    return session_of(
        *(ops or (EMPTY, ran_out(), HOLDS_ALL)),
        batch(),
        loops=[
            make_loop(
                keras=make_keras(epochs=12), epoch_ends=ends, projected_s=22.0, elapsed_s=10.0
            )
        ],
        run=make_waits(first_s=1.7, **time),
        steps=make_steps(fill_ms=1700.0),
        breakdown=make_breakdown(input_wait=1.0, dispatch=70.0, python=20.0),
    )


MET = replace(EMPTY, self_ms_per_step=0.01, elements=32.0)
UNMET = ran_out(elements=32.0)
SMALL = replace(HOLDS_ALL, **{"parameters": {"buffer_size": 100}})
BEHIND = replace(UNMET, id="behind", self_ms_per_step=4.0)
UNMEASURED = replace(HOLDS_ALL, **NOTHING)


@cases(
    {
        "ran out": (waiting(), "fail"),
        "small buffer": (waiting(MET, UNMET, SMALL), "pass"),
        "costly behind": (waiting(MET, UNMET, HOLDS_ALL, BEHIND), "pass"),
        "unmeasured": (waiting(EMPTY, ran_out(), UNMEASURED), "informative"),
    },
    "session, status",
)
def test_waits_at_the_ends_of_epochs(session: Session, status: str) -> None:
    assert only(SLOW_SHUFFLE_FILL, session).status == status


def test_moving_the_shuffle_leaves_the_work_to_the_steps() -> None:
    """16 s of work beside 3 s of steps: 20 s of loop become 20 - 16 + 13."""
    finding = only(SLOW_SHUFFLE_FILL, waiting())
    assert finding.evidence["fill_percent_of_loop"] == pytest.approx(80.0)
    assert finding.speedup_at_most == pytest.approx(20.0 / 17.0, abs=0.001)
    half = only(
        SLOW_SHUFFLE_FILL,
        waiting(**{"steps_s": 16.0, "first_batches_s": 4.0, "between_s": 0.0, "each_s": 0.4}),
    )
    assert half.speedup_at_most == pytest.approx(20.0 / 16.0, abs=0.001)


ALL = (Insert("map", "cache", {"elements": 640}),)


def test_a_cache_saves_the_waits_of_every_epoch_but_the_first() -> None:
    finding = only(MISSING_CACHE, waiting())
    assert decided(MISSING_CACHE, waiting()) == ("fail", ALL)
    assert finding.speedup_at_most == pytest.approx(5.0)
    assert finding.edit.whole_epoch
    little = waiting(steps_s=19.0, first_batches_s=0.9, between_s=0.1, each_s=0.3)
    assert only(MISSING_CACHE, little).status == "pass"
    behind = waiting(EMPTY, HOLDS_ALL, ran_out())
    assert only(MISSING_CACHE, behind).status != "fail"
    all_waits = waiting(first_batches_s=20.0, steps_s=0.0, between_s=0.0)
    assert only(MISSING_CACHE, all_waits).speedup_at_most == 100.0


def in_the_first_epoch(*ops: Operation) -> Session:
    """Twelve epochs, of which a part of the first was seen; each waits for two seconds."""
    starts = make_part("epoch_start", 24.0, loop_id="loop_0", count=12)
    session = waiting(*ops, ends=0)
    run = make_run(starts, whole_s=72.0)
    return session.but(steps=make_steps(fill_ms=2000.0), run=run)


def test_a_fill_of_all_the_data_speaks_before_an_epoch_has_ended() -> None:
    """Of 72 s, eleven later waits take 22 s, and steps 48 s."""
    session = in_the_first_epoch()
    cache, moved = only(MISSING_CACHE, session), only(SLOW_SHUFFLE_FILL, session)
    assert (cache.status, cache.part, saved_s(cache)) == ("fail", "epoch_start", 22.0)
    assert cache.speedup_at_most == pytest.approx(70.0 / 48.0, abs=0.001)
    assert tried(moved) == ("fail", True)
    for finding in (cache, moved):
        assert finding.part == "epoch_start"
        assert "inferred" in finding.advice
