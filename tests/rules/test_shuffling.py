from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.run_gain import gain_for_run
from pipediag.rules.caching import MISSING_CACHE
from pipediag.rules.shuffling import SLOW_SHUFFLE_FILL, SMALL_SHUFFLE, smaller_buffer, smaller_size
from pipediag.rules.step_overhead import HOST_OVERHEAD
from pipediag.session.edits import Edit, Insert, Move, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_keras, make_loop, make_loop_time, make_session
from tests.ledgers import make_part, make_run
from tests.records import (
    make_breakdown,
    make_environment,
    make_function,
    make_operation,
    make_steps,
)
from tests.rules.sessions import batch, only, run, saved_s, session_of, source


def small_shuffle(buffer: int | None, id: str = "shuffle") -> Operation:
    return make_operation(id, "shuffle", line=5, parameters={"buffer_size": buffer})


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (session_of(source(), small_shuffle(32), batch(32)), "no larger than a batch"),
        (session_of(source(), small_shuffle(64), batch(32)), "holds 64 of 10000"),
        (
            session_of(source(), batch(32, cardinality=313), small_shuffle(10)),
            "above `batch` at line 9",
        ),
    ],
)
def test_fails_as_a_matter_of_quality(session: Session, words: str) -> None:
    finding = only(SMALL_SHUFFLE, session)
    assert (finding.status, finding.line) == ("fail", 5)
    assert finding.speedup_at_most is None


@pytest.mark.parametrize(
    "session",
    [
        session_of(source(), small_shuffle(1000), batch(32)),
        session_of(source(cardinality=16), small_shuffle(16), batch(32)),
        session_of(source(), batch(32, cardinality=313), small_shuffle(313)),
        session_of(source(), small_shuffle(10_000, "first"), make_operation("m", "map"), batch(32)),
    ],
)
def test_small_near_misses_pass(session: Session) -> None:
    assert only(SMALL_SHUFFLE, session).status == "pass"


def test_a_small_buffer_behind_a_large_one_passes() -> None:

    session = session_of(source(), small_shuffle(10_000, "first"), small_shuffle(16), batch(32))
    assert [finding.status for finding in run(SMALL_SHUFFLE, session)] == ["pass", "pass"]


def test_small_missing_data() -> None:
    assert (
        only(SMALL_SHUFFLE, session_of(source(), small_shuffle(None), batch())).status
        == "inconclusive"
    )
    assert only(SMALL_SHUFFLE, session_of(source(), batch())).status == "not-applicable"
    assert only(SMALL_SHUFFLE, make_session(pipeline=None)).status == "inconclusive"


@pytest.mark.parametrize(("buffer", "status"), [(100, "pass"), (99, "fail"), (33, "fail")])
def test_a_buffer_has_to_hold_its_part_of_the_elements(buffer: int, status: str) -> None:
    finding = only(SMALL_SHUFFLE, session_of(source(), small_shuffle(buffer), batch(32)))
    assert finding.status == status


def test_elements_are_counted_before_they_are_repeated() -> None:
    repeat = make_operation("repeat", "repeat", cardinality=1_000_000)
    session = session_of(source(cardinality=100), repeat, small_shuffle(100), batch(32))
    finding = only(SMALL_SHUFFLE, session)
    assert (finding.status, finding.evidence["elements"]) == ("pass", 100)


def interleaved(buffer: int, *behind: Operation, **loop: Any) -> Session:
    """Ten files, each of unknown length, as the standard pipeline over TFRecords reads them."""
    interleave = make_operation("interleave", "interleave", cardinality=None)
    values = {"batch_size": 32, "steps": 1000, "iterators": 4, **loop}
    return session_of(
        source(cardinality=10),
        interleave,
        small_shuffle(buffer),
        *(behind or (batch(32),)),
        loops=[make_loop(**values)],
    )


@pytest.mark.parametrize(
    ("buffer", "status"), [(64, "fail"), (90, "not-applicable"), (107, "pass")]
)
def test_behind_an_interleave_it_counts_by_epochs(buffer: int, status: str) -> None:
    # 32,000 examples in three epochs and a part of a fourth: 8,000 to 10,666 each.
    finding = only(SMALL_SHUFFLE, interleaved(buffer))
    assert (finding.status, finding.evidence["elements"]) == (status, 8000)


@pytest.mark.parametrize(
    "session",
    [
        interleaved(64, iterators=1),
        interleaved(64, batch_size=None),
        interleaved(64, make_operation("repeat", "repeat"), batch(32)),
        interleaved(64, make_operation("filter", "filter"), batch(32)),
        session_of(source(cardinality=None), small_shuffle(1000), batch(32)),
    ],
)
def test_files_are_no_elements(session: Session) -> None:
    finding = only(SMALL_SHUFFLE, session)
    assert (finding.status, finding.evidence["elements"]) == ("not-applicable", None)


def fill_shuffle(buffer: int = 1000) -> Operation:
    return make_operation("shuffle", "shuffle", line=8, parameters={"buffer_size": buffer})


def slow_map(**overrides: Any) -> Operation:
    # 0.25 ms an element: a buffer of 1000 takes 250 ms.
    values: dict[str, Any] = {"elements": 32.0, "self_ms_per_step": 8.0}
    return make_operation("map", "map", **{**values, **overrides})


def session_with(
    *ops: Operation, fill_ms: float | None = 250.0, projected_s: float | None = 2.5
) -> Session:
    loop = make_loop(projected_s=projected_s, keras=make_keras(epochs=2))
    chain = ops or (source(self_ms_per_step=0.0), slow_map(), fill_shuffle(), batch())
    return session_of(*chain, steps=make_steps(fill_ms=fill_ms), loops=[loop])


def test_fails_and_predicts_over_the_whole_loop() -> None:
    finding = only(SLOW_SHUFFLE_FILL, session_with())
    assert finding.status == "fail"
    # Two fills of 0.25 s in 2.5 s.
    assert finding.speedup_at_most == pytest.approx(1.25)
    assert finding.evidence["estimated_fill_ms"] == pytest.approx(250.0)


def test_unknown_length_is_judged_in_steps() -> None:
    assert only(SLOW_SHUFFLE_FILL, session_with(projected_s=None)).status == "pass"
    finding = only(
        SLOW_SHUFFLE_FILL,
        session_with(
            source(self_ms_per_step=0.0),
            slow_map(),
            fill_shuffle(8000),
            batch(),
            fill_ms=2000.0,
            projected_s=None,
        ),
    )
    assert finding.status == "fail"


def test_a_generator_should_shuffle_itself() -> None:
    generator = make_operation("gen", "from_generator", elements=32.0, self_ms_per_step=8.0)
    finding = only(SLOW_SHUFFLE_FILL, session_with(generator, fill_shuffle(), batch()))
    assert finding.status == "fail"


def test_without_costly_work_above_it_only_informs() -> None:
    session = session_with(source(self_ms_per_step=8.0), fill_shuffle(), batch())
    assert only(SLOW_SHUFFLE_FILL, session).status == "informative"


def test_a_smaller_buffer_is_tried_in_whole_epochs_where_nothing_can_be_moved() -> None:
    """A tenth of 4000, as that holds eight batches of 32 and a hundredth of the data."""
    cheap = session_with(source(self_ms_per_step=8.0), fill_shuffle(4000), batch(), fill_ms=1000.0)
    finding = only(SLOW_SHUFFLE_FILL, cheap)
    assert finding.edit == Edit(
        id="epoch-start:buffer:shuffle",
        label="a buffer of 400 for the shuffle in line 8",
        changes=(SetParameters("shuffle", {"buffer_size": 400}),),
        check="shape",
        caveat="It counts time; how well the model learns from data that is mixed less is not "
        "measured.",
        whole_epoch=True,
    )
    assert finding.effect_on_results == "changes a hyper-parameter"


def test_behind_a_generator_a_smaller_buffer_is_tried() -> None:
    generator = make_operation("gen", "from_generator", elements=32.0, self_ms_per_step=8.0)
    session = session_with(generator, fill_shuffle(4000), batch(), fill_ms=1000.0)
    finding = only(SLOW_SHUFFLE_FILL, session)
    assert finding.status == "fail"
    assert finding.edit is not None
    assert finding.edit.changes == (SetParameters("shuffle", {"buffer_size": 400}),)
    assert finding.effect_on_results == "changes a hyper-parameter"
    assert finding.speedup_at_most == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("buffer", "data", "size", "edited"),
    [
        (4000, 10_000, 32, 400),
        # Eight batches of 100.
        (4000, 10_000, 100, 800),
        # A hundredth of the data.
        (4000, 100_000, 32, 1000),
        # A buffer holds no more than there is.
        (100_000, 6000, 32, 600),
        # Half of it saves too little to mix less for.
        (500, 10_000, 32, None),
        (511, 10_000, 32, None),
        (512, 10_000, 32, 256),
    ],
)
def test_how_much_smaller(buffer: int, data: int, size: int, edited: int | None) -> None:
    session = session_of(source(cardinality=data), fill_shuffle(buffer), batch(size))
    op = session.operation("shuffle")
    assert op is not None
    assert smaller_size(session, op) == edited


def test_without_a_batch_behind_it_no_size_is_known() -> None:
    session = session_of(source(), fill_shuffle(4000))
    op = session.operation("shuffle")
    assert op is not None
    assert smaller_buffer(session, op, "rule") is None


@pytest.mark.parametrize(
    "session",
    [
        session_with(fill_ms=20.0),
        session_with(projected_s=600.0),
        session_with(
            source(self_ms_per_step=None),
            slow_map(removed_by_tensorflow=True, self_ms_per_step=None),
            fill_shuffle(),
            batch(),
        ),
        # The wait is start-up: 250 ms of filling explain little of 5 s.
        session_with(fill_ms=5000.0),
    ],
)
def test_fill_near_misses_pass(session: Session) -> None:
    assert only(SLOW_SHUFFLE_FILL, session).status == "pass"


def test_unmeasured_costs_are_inconclusive() -> None:
    nothing = {"self_ms_per_step": None}
    session = session_with(source(**nothing), slow_map(**nothing), fill_shuffle(), batch())
    finding = only(SLOW_SHUFFLE_FILL, session)
    assert (finding.status, finding.edit is not None) == ("informative", True)
    cheap = session_with(source(**nothing), fill_shuffle(), batch())
    assert only(SLOW_SHUFFLE_FILL, cheap).status == "pass"


def test_a_wait_is_a_fill_where_only_the_shuffle_runs_on() -> None:
    """In the one epoch that was seen: tf.data knows no costs of what has run out."""
    nothing = {"self_ms_per_step": None}
    above = (source(**nothing), slow_map(**nothing))
    session = session_with(*above, fill_shuffle(), batch(), fill_ms=500.0, projected_s=5.0)
    finding = only(SLOW_SHUFFLE_FILL, session)
    assert finding.status == "fail"
    assert finding.speedup_at_most == pytest.approx(1.25)
    unknown = fill_shuffle().model_copy(update=nothing)
    session = session_with(*above, unknown, batch(), fill_ms=500.0, projected_s=5.0)
    finding = only(SLOW_SHUFFLE_FILL, session)
    assert (finding.status, finding.edit is not None) == ("informative", True)


def test_fill_missing_data() -> None:
    assert only(SLOW_SHUFFLE_FILL, session_with(fill_ms=None)).status == "inconclusive"
    assert only(SLOW_SHUFFLE_FILL, session_of(source(), batch())).status == "not-applicable"
    assert only(SLOW_SHUFFLE_FILL, make_session(steps=None)).status == "inconclusive"


def test_the_shuffle_is_tried_above_the_map_in_whole_epochs() -> None:
    finding = only(SLOW_SHUFFLE_FILL, session_with())
    assert finding.effect_on_results == "same up to order or rounding"
    assert finding.edit is not None
    assert finding.edit.changes == (Move("shuffle", "source"),)
    assert finding.edit.whole_epoch


def test_a_shuffle_stays_behind_what_hands_on_other_elements() -> None:
    parts = make_operation("parts", "flat_map", line=13)
    first = source(self_ms_per_step=0.0)
    session = session_with(first, slow_map(), parts, fill_shuffle(500), batch())
    finding = only(SLOW_SHUFFLE_FILL, session)
    assert finding.status == "fail"
    assert finding.edit is None
    assert "can't be moved above" in str(finding.trial.reason)


def test_of_several_shuffles_the_longest_fill_is_meant() -> None:
    short = make_operation("short", "shuffle", line=7, parameters={"buffer_size": 10})
    behind = make_operation("behind", "shuffle", line=8, parameters={"buffer_size": 20})
    long_one = fill_shuffle()
    first = source(self_ms_per_step=0.0)
    session = session_with(first, slow_map(), short, long_one, behind, batch())
    assert only(SLOW_SHUFFLE_FILL, session).op_id == "shuffle"


@pytest.mark.parametrize(("fill_ms", "status"), [(1000.0, "fail"), (1001.0, "informative")])
def test_filling_has_to_explain_its_part_of_the_wait(fill_ms: float, status: str) -> None:
    """300 ms of filling."""
    session = session_with(
        source(self_ms_per_step=0.0), slow_map(), fill_shuffle(1200), batch(), fill_ms=fill_ms
    )
    assert only(SLOW_SHUFFLE_FILL, session).status == status


def test_a_buffer_fills_with_no_more_than_there_is() -> None:
    first = source(self_ms_per_step=0.0, cardinality=500)
    few = slow_map(cardinality=500)
    finding = only(SLOW_SHUFFLE_FILL, session_with(first, few, fill_shuffle(1000), batch()))
    assert finding.evidence["estimated_fill_ms"] == 125.0


def test_fills_that_seem_longer_than_the_loop_leave_a_twentieth() -> None:
    finding = only(SLOW_SHUFFLE_FILL, session_with(projected_s=0.1))
    assert finding.evidence["fill_percent_of_loop"] == 95.0
    assert finding.speedup_at_most == 20.0


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
    finding = only(SLOW_SHUFFLE_FILL, waiting())
    assert finding.status == "fail"
    assert finding.evidence["fill_ms"] == 1600.0
    assert finding.evidence["fill_percent_of_loop"] == 80.0


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
    assert only(SLOW_SHUFFLE_FILL, again(*chain)).status == "fail"
    small = ops["shuffle"].model_copy(update={"parameters": {"buffer_size": 100}})
    assert only(SLOW_SHUFFLE_FILL, again(unmet, small, ops["batch"])).status == "pass"
    behind = ops["map"].model_copy(update={"id": "behind", "self_ms_per_step": 4.0})
    assert only(SLOW_SHUFFLE_FILL, again(*chain, behind)).status == "pass"
    cheap = ops["map"].model_copy(update={"self_ms_per_step": 0.001, "elements": 32.0})
    assert only(SLOW_SHUFFLE_FILL, again(cheap, *chain[1:])).status == "pass"


def test_moving_the_shuffle_leaves_the_work_to_the_steps() -> None:
    """16 s of work beside 3 s of steps: 22 s of loop become 22 - 16 + 13."""
    finding = only(SLOW_SHUFFLE_FILL, waiting())
    assert finding.speedup_at_most == pytest.approx(22.0 / 19.0, abs=0.001)
    half = only(
        SLOW_SHUFFLE_FILL,
        waiting(steps_s=16.0, first_batches_s=4.0, between_epochs_s=0.0, first_batch_ms=400.0),
    )
    assert half.speedup_at_most == pytest.approx(22.0 / 18.0, abs=0.001)


def test_a_wait_that_is_little_of_the_loop_passes() -> None:
    session = waiting(steps_s=19.0, first_batches_s=0.9, between_epochs_s=0.1)
    assert only(SLOW_SHUFFLE_FILL, session).status == "pass"
    assert only(MISSING_CACHE, session).status == "pass"


def test_what_the_wait_is_for_stays_open_where_the_shuffle_was_not_measured() -> None:
    finding = only(SLOW_SHUFFLE_FILL, waiting(self_ms=None))
    assert finding.status == ("inconclusive" if finding.edit is None else "informative")


def test_a_cache_saves_the_waits_of_every_epoch_but_the_first() -> None:
    finding = only(MISSING_CACHE, waiting())
    assert finding.status == "fail"
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
    edit = only(MISSING_CACHE, session.model_copy(update={"pipeline": pipeline})).edit
    assert edit is not None
    assert edit.changes == (Insert("map", "cache", {"elements": 640}),)


def in_a_run(session: Session) -> Session:
    """A run of 40 s, 20 s of which are waits for first batches, the first of them of 2.4 s."""
    starts = make_part("epoch_start", 20.0, loop_id="loop_0", count=12)
    return session.model_copy(update={"run": make_run(starts, whole_s=40.0)})


def test_both_speak_of_the_waits_and_say_what_they_take_off_the_run() -> None:
    session = in_a_run(waiting())
    cache, moved = only(MISSING_CACHE, session), only(SLOW_SHUFFLE_FILL, session)
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
    finding = only(MISSING_CACHE, busy)
    assert (finding.status, finding.part, saved_s(finding)) == ("fail", "steps", None)


def test_a_fill_that_was_timed_once_takes_all_waits_along() -> None:
    session = in_a_run(
        waiting(
            costly_map(cardinality=640, elements=32.0, self_ms_per_step=90.0), epoch_ends_seen=0
        )
    )
    finding = only(SLOW_SHUFFLE_FILL, session)
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
    cache, moved = only(MISSING_CACHE, session), only(SLOW_SHUFFLE_FILL, session)
    assert (cache.status, cache.part, saved_s(cache)) == ("fail", "epoch_start", 22.0)
    assert cache.speedup_at_most == pytest.approx(70.0 / 48.0, abs=0.001)
    assert cache.edit is not None
    assert cache.edit.whole_epoch
    assert (moved.status, moved.part) == ("fail", "epoch_start")
    for finding in (cache, moved):
        assert "No end of an epoch was seen" in finding.advice


def test_the_map_that_fills_is_cached_and_not_the_one_that_runs_on() -> None:
    session = in_the_first_epoch()
    assert session.pipeline is not None
    cheap = make_operation("cheap", "map", line=15, function=make_function(), elements=32.0)
    first, costly, shuffle, last = session.pipeline.ops
    finding = only(MISSING_CACHE, in_the_first_epoch(first, costly, shuffle, cheap, last))
    assert (finding.status, finding.op_id) == ("fail", "map")


def test_a_map_behind_the_shuffle_is_not_what_is_waited_for() -> None:
    session = waiting()
    assert session.pipeline is not None
    ops = {op.id: op for op in session.pipeline.ops}
    behind = [ops["source"], ops["shuffle"], ops["map"], ops["batch"]]
    moved = session_of(*behind, loops=session.loops, breakdown=session.breakdown)
    assert only(MISSING_CACHE, moved).status != "fail"


def test_the_gain_of_a_cache_that_leaves_nothing_is_bounded() -> None:
    session = waiting(first_batches_s=20.0, steps_s=0.0, between_epochs_s=0.0)
    none_left = session.model_copy(
        update={"loops": [session.loops[0].model_copy(update={"projected_s": None})]}
    )
    finding = only(MISSING_CACHE, none_left)
    assert finding.speedup_at_most == 100.0


def test_faster_steps_come_second() -> None:
    finding = only(HOST_OVERHEAD, waiting())
    assert finding.status == "informative"


def test_what_a_disk_would_save_between_epochs_is_not_known() -> None:
    small = make_environment(free_disk_bytes=10**12)
    session = in_a_run(waiting()).model_copy(
        update={"environment": small, "host": make_host(available_bytes=1_000_000)}
    )
    finding = only(MISSING_CACHE, session)
    assert (finding.status, finding.part) == ("fail", "epoch_start")
    assert (finding.speedup_at_most, saved_s(finding)) == (None, None)


@pytest.mark.parametrize(("steps_s", "left_s"), [(20.0, 5.0), (25.0, None)])
def test_an_epoch_makes_more_than_the_buffer_holds(steps_s: float, left_s: float | None) -> None:
    """16 s fill it with 640 of 1000 elements, so that all of them take 25 s beside the steps."""
    more = waiting(costly_map(cardinality=1000), steps_s=steps_s, total_s=50.0)
    assert only(SLOW_SHUFFLE_FILL, more).evidence.get("work_left_s") == left_s
