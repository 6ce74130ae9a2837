"""What rules say of loops that wait for the first batch of each epoch."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.run_gain import gain_for_run
from pipediag.rules.pipeline import missing_cache, slow_shuffle_fill
from pipediag.rules.step import host_overhead
from pipediag.session.edits import Insert
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_keras, make_loop, make_loop_time
from tests.ledgers import make_part, make_run
from tests.records import (
    make_breakdown,
    make_environment,
    make_function,
    make_operation,
    make_steps,
)
from tests.rules.sessions import batch, only, saved_s, session_of, source


def costly_map(**overrides: Any) -> Operation:
    values = {"elements": None, "self_ms_per_step": None, "element_bytes": 1000}
    return make_operation("map", "map", function=make_function(), **{**values, **overrides})


def waiting(
    map_: Operation | None = None, *, buffer: int = 640, self_ms: float | None = 0.1, **time: Any
) -> Session:
    """The map has run out before the first batch; the steps wait for nothing."""
    shuffle = make_operation(
        "shuffle", "shuffle", line=14, self_ms_per_step=self_ms, parameters={"buffer_size": buffer}
    )
    loop = make_loop(
        keras=make_keras(epochs=12), time=make_loop_time(**time), projected_s=22.0, elapsed_s=10.0
    )
    return session_of(
        source(elements=None, self_ms_per_step=None, cardinality=640),
        map_ or costly_map(cardinality=640),
        shuffle,
        batch(),
        loops=[loop],
        steps=make_steps(fill_ms=1700.0),
        breakdown=make_breakdown(input_wait=1.0, dispatch=70.0, python=20.0),
    )


def test_a_fill_that_was_seen_at_the_ends_of_epochs_fails() -> None:
    finding = only(slow_shuffle_fill, waiting())
    assert finding.status == "fail"
    assert finding.evidence["fill_ms"] == 1600.0
    assert finding.evidence["fill_percent_of_loop"] == 80.0
    assert "Move `shuffle` at line 14 above `map` at line 12" in finding.advice


def test_a_buffer_of_all_the_data_is_what_is_waited_for_whatever_steps_say() -> None:
    """The source was met in the profile for a moment, and the map that ran before it was not."""
    session = waiting()
    assert session.pipeline is not None
    ops = {op.id: op for op in session.pipeline.ops}
    met = ops["source"].model_copy(update={"self_ms_per_step": 0.01, "elements": 32.0})

    def again(*others: Operation) -> Session:
        return session_of(
            met, *others, loops=session.loops, steps=session.steps, breakdown=session.breakdown
        )

    unmet = ops["map"].model_copy(update={"elements": 32.0})
    chain = [unmet, ops["shuffle"], ops["batch"]]
    assert only(slow_shuffle_fill, again(*chain)).status == "fail"
    small = ops["shuffle"].model_copy(update={"parameters": {"buffer_size": 100}})
    assert only(slow_shuffle_fill, again(unmet, small, ops["batch"])).status == "pass"
    behind = ops["map"].model_copy(update={"id": "behind", "self_ms_per_step": 4.0})
    assert only(slow_shuffle_fill, again(*chain, behind)).status == "pass"
    cheap = ops["map"].model_copy(update={"self_ms_per_step": 0.001, "elements": 32.0})
    assert only(slow_shuffle_fill, again(cheap, *chain[1:])).status == "pass"


def test_moving_the_shuffle_leaves_the_work_to_the_steps() -> None:
    """16 s of work beside 3 s of steps: 22 s of loop become 22 - 16 + 13."""
    finding = only(slow_shuffle_fill, waiting())
    assert finding.speedup_at_most == pytest.approx(22.0 / 19.0, abs=0.001)
    assert "set the pace of the steps" in finding.advice
    half = only(
        slow_shuffle_fill,
        waiting(steps_s=16.0, first_batches_s=4.0, between_epochs_s=0.0, first_batch_ms=400.0),
    )
    assert half.speedup_at_most == pytest.approx(22.0 / 18.0, abs=0.001)
    assert "set the pace" not in half.advice


def test_a_wait_that_is_little_of_the_loop_passes() -> None:
    session = waiting(steps_s=19.0, first_batches_s=0.9, between_epochs_s=0.1)
    assert only(slow_shuffle_fill, session).status == "pass"
    assert only(missing_cache, session).status == "pass"


def test_what_the_wait_is_for_stays_open_where_the_shuffle_was_not_measured() -> None:
    finding = only(slow_shuffle_fill, waiting(self_ms=None))
    assert finding.status == ("inconclusive" if finding.edit is None else "informative")


def test_a_cache_saves_the_waits_of_every_epoch_but_the_first() -> None:
    finding = only(missing_cache, waiting())
    assert finding.status == "fail"
    assert "`.cache()` directly behind `map`" in finding.advice
    assert finding.speedup_at_most == pytest.approx(22.0 / 6.0, abs=0.001)
    assert finding.evidence["first_batch_percent_of_loop"] == 80.0
    assert finding.edit is not None
    assert finding.edit.whole_epoch
    assert finding.edit.changes == (Insert("map", "cache", {"elements": 640}),)


def test_a_cache_that_no_step_shows_the_elements_of_holds_all_of_them() -> None:
    session = waiting()
    assert session.pipeline is not None
    ops = [op.model_copy(update={"elements": None}) for op in session.pipeline.ops]
    pipeline = session.pipeline.model_copy(update={"ops": ops})
    edit = only(missing_cache, session.model_copy(update={"pipeline": pipeline})).edit
    assert edit is not None
    assert edit.changes == (Insert("map", "cache", {"elements": 640}),)


def in_a_run(session: Session) -> Session:
    """A run of 40 s, 20 s of which are waits for first batches, the first of them of 2.4 s."""
    starts = make_part("epoch_start", 20.0, loop_id="loop_0", count=12)
    return session.model_copy(update={"run": make_run(starts, whole_s=40.0)})


def test_both_speak_of_the_waits_and_say_what_they_take_off_the_run() -> None:
    session = in_a_run(waiting())
    cache, moved = only(missing_cache, session), only(slow_shuffle_fill, session)
    assert (cache.part, moved.part) == ("epoch_start", "epoch_start")
    # Eleven waits of 1.6 s; 13 of 16 s of their work would stay beside the steps.
    assert saved_s(cache) == pytest.approx(17.6)
    assert saved_s(moved) == pytest.approx(17.6 * 3 / 16)
    gain = gain_for_run(session, cache)
    assert gain is not None
    assert (gain.basis, gain.after_s) == ("at most", pytest.approx(22.4))


def test_a_cache_for_the_steps_speaks_of_the_steps() -> None:
    session = in_a_run(waiting(costly_map(cardinality=640, elements=32.0, self_ms_per_step=8.0)))
    busy = session.model_copy(update={"breakdown": make_breakdown(input_wait=70.0)})
    finding = only(missing_cache, busy)
    assert (finding.status, finding.part, saved_s(finding)) == ("fail", "steps", None)


def test_a_fill_that_was_timed_once_takes_all_waits_along() -> None:
    session = in_a_run(
        waiting(
            costly_map(cardinality=640, elements=32.0, self_ms_per_step=90.0), epoch_ends_seen=0
        )
    )
    finding = only(slow_shuffle_fill, session)
    assert (finding.status, finding.part, saved_s(finding)) == ("fail", "epoch_start", 20.0)


def in_the_first_epoch(*ops: Operation, first_s: float = 2.0) -> Session:
    """Twelve epochs, of which a part of the first was seen; each waits for two seconds."""
    starts = make_part("epoch_start", 12.0 * first_s, loop_id="loop_0", count=12)
    session = waiting(epoch_ends_seen=0, first_batches_s=0.0, first_batch_ms=None)
    assert session.pipeline is not None
    return session_of(
        *(ops or session.pipeline.ops),
        loops=session.loops,
        steps=make_steps(fill_ms=1000.0 * first_s),
        breakdown=session.breakdown,
        run=make_run(starts, whole_s=36.0 * first_s),
    )


def test_a_fill_of_all_the_data_speaks_before_an_epoch_has_ended() -> None:
    """Of 72 s, eleven later waits take 22 s, and steps 48 s."""
    session = in_the_first_epoch()
    cache, moved = only(missing_cache, session), only(slow_shuffle_fill, session)
    assert (cache.status, cache.part, saved_s(cache)) == ("fail", "epoch_start", 22.0)
    assert cache.speedup_at_most == pytest.approx(70.0 / 48.0, abs=0.001)
    assert cache.edit is not None
    assert cache.edit.whole_epoch
    assert (moved.status, moved.part) == ("fail", "epoch_start")
    for finding in (cache, moved):
        assert "No end of an epoch was seen" in finding.advice
    assert "No end" not in only(missing_cache, waiting()).advice


def test_the_map_that_fills_is_cached_and_not_the_one_that_runs_on() -> None:
    session = in_the_first_epoch()
    assert session.pipeline is not None
    cheap = make_operation("cheap", "map", line=15, function=make_function(), elements=32.0)
    first, costly, shuffle, last = session.pipeline.ops
    finding = only(missing_cache, in_the_first_epoch(first, costly, shuffle, cheap, last))
    assert (finding.status, finding.op_id) == ("fail", "map")


def test_a_map_behind_the_shuffle_is_not_what_is_waited_for() -> None:
    session = waiting()
    assert session.pipeline is not None
    ops = {op.id: op for op in session.pipeline.ops}
    behind = [ops["source"], ops["shuffle"], ops["map"], ops["batch"]]
    moved = session_of(*behind, loops=session.loops, breakdown=session.breakdown)
    assert only(missing_cache, moved).status != "fail"


def test_the_gain_of_a_cache_that_leaves_nothing_is_bounded() -> None:
    session = waiting(first_batches_s=20.0, steps_s=0.0, between_epochs_s=0.0)
    none_left = session.model_copy(
        update={"loops": [session.loops[0].model_copy(update={"projected_s": None})]}
    )
    finding = only(missing_cache, none_left)
    assert finding.speedup_at_most == 100.0


def test_faster_steps_come_second() -> None:
    finding = only(host_overhead, waiting())
    assert finding.status == "informative"
    assert "deal with that first" in finding.advice


def test_what_a_disk_would_save_between_epochs_is_not_known() -> None:
    small = make_environment(free_disk_bytes=10**12)
    session = in_a_run(waiting()).model_copy(
        update={"environment": small, "host": make_host(available_bytes=1_000_000)}
    )
    finding = only(missing_cache, session)
    assert (finding.status, finding.part) == ("fail", "epoch_start")
    assert "`.cache(path)`, on a fast disk," in finding.advice
    assert (finding.speedup_at_most, saved_s(finding)) == (None, None)


@pytest.mark.parametrize(("steps_s", "left_s"), [(20.0, 5.0), (25.0, None)])
def test_an_epoch_makes_more_than_the_buffer_holds(steps_s: float, left_s: float | None) -> None:
    """16 s fill it with 640 of 1000 elements, so that all of them take 25 s beside the steps."""
    more = waiting(costly_map(cardinality=1000), steps_s=steps_s, total_s=50.0)
    assert only(slow_shuffle_fill, more).evidence.get("work_left_s") == left_s
