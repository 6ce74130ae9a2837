from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.caching import MISSING_CACHE
from pipediag.session.edits import Edit, Insert, Move
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_keras, make_loop, make_session
from tests.records import (
    make_breakdown,
    make_environment,
    make_function,
    make_input_wait,
    make_operation,
    make_pipeline,
    make_steps,
)
from tests.rules.sessions import batch, keeps_up, only, session_of, source


def generator(**overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 32.0,
        "self_ms_per_step": 8.0,
        "element_bytes": 12,
        "cardinality": None,
        "function": make_function(stateful=True, graph_ops={"PyFunc": 3}),
    }
    return make_operation("gen", "from_generator", **{**values, **overrides})


def generator_session_with(*ops: Operation, epochs: int | None = 3, **overrides: Any) -> Session:
    loop = make_loop(keras=make_keras(epochs=epochs))
    return session_of(*ops, batch(), **{"loops": [loop], **overrides})


def test_it_is_tried_on_the_condition_that_the_data_stays_the_same() -> None:
    finding = only(MISSING_CACHE, generator_session_with(generator(cardinality=1_000)))
    assert finding.status == "informative"
    # Of 10 ms, 7 of which are waiting, the batch's 0.1 ms of waiting remain: 3.1 ms.
    assert finding.evidence["at_most_if_the_same"] == pytest.approx(3.332, rel=0.001)
    assert finding.edit is not None
    assert finding.edit.changes == (Insert("gen", "cache", {"elements": 1_000}),)
    assert finding.condition == "if the generator yields the same data in every epoch"
    assert finding.effect_on_results == "not known"


def test_where_their_number_is_not_known_the_condition_names_how_many_fit() -> None:
    host = make_host(available_bytes=24_000)
    finding = only(MISSING_CACHE, generator_session_with(generator(), host=host))
    assert finding.edit is not None
    assert "at most 1,000 elements of 12 bytes" in (finding.condition or "")


@pytest.mark.parametrize(
    ("op", "keras"),
    [
        (generator(element_bytes=None, bytes_per_element=None), make_keras(epochs=3)),
        (generator(), make_keras(epochs=3, steps_per_epoch=100)),
    ],
)
def test_a_cache_of_unknown_size_is_refused_for_its_memory(op: Operation, keras: Any) -> None:
    finding = only(MISSING_CACHE, session_of(op, batch(), loops=[make_loop(keras=keras)]))
    assert (finding.status, finding.edit, finding.condition) == ("informative", None, None)


def test_endless_passes_have_no_first_one_to_count() -> None:
    endless = make_operation("repeat", "repeat", parameters={"count": None}, cardinality=-1)
    finding = only(MISSING_CACHE, generator_session_with(generator(), endless, epochs=None))
    assert finding.evidence["passes_over_data"] == "unlimited"


def test_a_cheap_map_behind_it_does_not_hide_it() -> None:
    cheap = make_operation("map", "map", self_ms_per_step=0.1, function=make_function())
    finding = only(MISSING_CACHE, generator_session_with(generator(), cheap))
    assert (finding.status, finding.op_id) == ("informative", "gen")


def test_a_costly_map_behind_it_goes_first() -> None:
    costly = make_operation(
        "map", "map", self_ms_per_step=6.0, element_bytes=12, function=make_function()
    )
    finding = only(MISSING_CACHE, generator_session_with(generator(), costly))
    assert finding.op_id == "map"


def test_its_size_is_said_where_it_is_known() -> None:
    finding = only(MISSING_CACHE, generator_session_with(generator(cardinality=1_000_000)))
    assert finding.evidence["cache_bytes"] == 12e6


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (generator_session_with(generator(), epochs=1), "read once"),
        (generator_session_with(generator(), epochs=None), "more than once is not known"),
        (
            generator_session_with(
                generator(cardinality=10**9), host=make_host(available_bytes=10**7)
            ),
            "A cache would take",
        ),
        (
            generator_session_with(
                generator(function=make_function(side_effect="it assigns `seen`"))
            ),
            "which a cache would end: it assigns `seen`",
        ),
    ],
)
def test_what_stands_against_a_cache_is_said(session: Session, words: str) -> None:
    finding = only(MISSING_CACHE, session)
    assert finding.status == "pass"


@pytest.mark.parametrize(
    "session",
    [
        generator_session_with(generator(), **keeps_up()),
        generator_session_with(generator(self_ms_per_step=0.1)),
        generator_session_with(generator(), make_operation("cache", "cache")),
        generator_session_with(generator(inside_function_of="outer")),
    ],
)
def test_of_one_that_costs_little_or_is_cached_nothing_is_said(session: Session) -> None:
    finding = only(MISSING_CACHE, session)
    assert (finding.status, finding.op_id) == ("pass", None)


def costly_map(**overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 32.0,
        "self_ms_per_step": 8.0,
        "element_bytes": 1000,
        "function": make_function(),
    }
    return make_operation("map", "map", **{**values, **overrides})


def missing_session_with(
    op: Operation, *more: Operation, epochs: int | None = 10, **kw: Any
) -> Session:
    loop = make_loop(keras=make_keras(epochs=epochs))
    return session_of(source(), op, *more, batch(), **{"loops": [loop], **kw})


def test_fails_and_bounds_what_a_full_cache_buys() -> None:
    finding = only(MISSING_CACHE, missing_session_with(costly_map()))
    assert finding.status == "fail"
    # Of the 7 ms wait, the batch's 0.1 ms remain.
    assert finding.speedup_at_most == pytest.approx(3.332, abs=0.001)
    assert finding.evidence["cache_bytes"] == 1e7
    assert finding.effect_on_results == "same results"


@pytest.mark.parametrize(
    ("contested", "status"), [(None, "pass"), (59.0, "informative"), (2.0, "pass")]
)
def test_a_trial_settles_what_two_clocks_say_of_the_wait(
    contested: float | None, status: str
) -> None:
    wait = make_input_wait(native_percent=1.0, contested_by_percent=contested)
    kept = {"breakdown": make_breakdown(input_wait=1.0), "input_wait": wait}

    finding = only(MISSING_CACHE, missing_session_with(costly_map(), **kept))
    cheap = only(MISSING_CACHE, missing_session_with(costly_map(self_ms_per_step=0.1), **kept))

    assert finding.status == status
    assert (finding.edit is not None) == (status == "informative")
    assert finding.speedup_at_most is None
    assert cheap.status == "pass"


def read_from_files(**parameters: Any) -> Session:
    reader = make_operation(
        "reader", "TFRecordDataset", elements=32.0, bytes_per_element=100.0, parameters=parameters
    )
    loop = make_loop(keras=make_keras(epochs=10))
    return session_of(reader, costly_map(cardinality=None), batch(), loops=[loop])


def test_the_files_that_are_read_tell_how_large_a_cache_would_be() -> None:
    """Ten times as large as they are, as an element of 100 bytes becomes one of 1000."""
    finding = only(MISSING_CACHE, read_from_files(file_bytes=2_000_000))
    assert finding.status == "fail"
    assert finding.evidence["cache_bytes"] == pytest.approx(2e7)
    assert finding.edit is not None


def larger_than_memory(free_disk_bytes: int | None) -> Session:
    environment = make_environment(free_disk_bytes=free_disk_bytes)
    small = make_host(available_bytes=10**7)
    return missing_session_with(costly_map(), host=small, environment=environment)


def test_what_memory_can_not_hold_goes_to_disk() -> None:
    finding = only(MISSING_CACHE, larger_than_memory(3 * 10**7))
    assert finding.status == "fail"
    assert finding.speedup_at_most is None
    assert finding.edit is not None
    assert finding.edit.label == "cache on disk behind the map in line 12"
    assert finding.edit.changes == (Insert("map", "cache", {"elements": 6400, "on_disk": True}),)


@pytest.mark.parametrize("free_disk_bytes", [None, 10**7])
def test_nor_where_the_disk_can_not_either(free_disk_bytes: int | None) -> None:
    finding = only(MISSING_CACHE, larger_than_memory(free_disk_bytes))
    assert finding.status == "informative"


def test_files_of_unknown_size_leave_it_open() -> None:
    finding = only(MISSING_CACHE, read_from_files(file_count=3))
    assert finding.status == "informative"


def test_a_python_function_may_not_be_deterministic() -> None:
    function = make_function(stateful=True, graph_ops={"PyFunc": 1})
    finding = only(MISSING_CACHE, missing_session_with(costly_map(function=function)))
    assert finding.effect_on_results == "not known"
    assert finding.condition is not None
    assert finding.edit is not None


def test_a_python_function_that_changes_something_is_not_safe_to_cache() -> None:
    function = make_function(
        stateful=True, graph_ops={"PyFunc": 1}, side_effect="it changes `seen`"
    )
    finding = only(MISSING_CACHE, missing_session_with(costly_map(function=function)))
    assert (finding.effect_on_results, finding.edit) == ("not safe here", None)
    assert "it changes `seen`" in str(finding.trial.reason)


def test_what_is_repeated_beside_a_zip_that_ends_stays_where_it_is() -> None:
    """As `timeseries_dataset_from_array` makes it: one array again and again, beside positions."""
    array = source().model_copy(update={"id": "array"})
    endless = make_operation("repeat", "repeat", parent_ids=["array"], cardinality=-1)
    positions = source(cardinality=7000).model_copy(update={"id": "positions"})
    joined = make_operation("zip", "zip", parent_ids=["repeat", "positions"], cardinality=7000)
    gather = costly_map(cardinality=7000, parent_ids=["zip"])
    ops = [array, endless, positions, joined, gather, batch(parent_ids=["map"])]
    pipeline = make_pipeline(ops=ops, bottleneck_op_id=None)
    loop = make_loop(keras=make_keras(epochs=10))
    finding = only(MISSING_CACHE, make_session(pipeline=pipeline, loops=[loop]))

    assert finding.edit is not None
    assert [type(change) for change in finding.edit.changes] == [Insert]
    assert finding.effect_on_results == "same results"


def test_shuffle_and_repeat_above_are_moved_behind() -> None:
    session = session_of(
        source(),
        make_operation("shuffle", "shuffle", line=2),
        make_operation("repeat", "repeat", line=3, parameters={"count": None}),
        costly_map(),
        batch(),
    )
    finding = only(MISSING_CACHE, session)
    assert finding.status == "fail"
    assert finding.evidence["passes_over_data"] == "unlimited"


@pytest.mark.parametrize(
    "session",
    [
        missing_session_with(costly_map(), make_operation("cache", "cache")),
        missing_session_with(costly_map(), make_operation("snapshot", "snapshot")),
        missing_session_with(
            costly_map(), make_operation("m", "map"), make_operation("cache", "cache")
        ),
        missing_session_with(costly_map(function=make_function(graph_ops={"RandomUniform": 1}))),
        missing_session_with(costly_map(function=make_function(graph_ops={"RandomGammaGrad": 1}))),
        session_of(source(), make_operation("mix", "sample_from_datasets"), costly_map(), batch()),
        missing_session_with(costly_map(self_ms_per_step=0.1)),
        missing_session_with(costly_map(), **keeps_up()),
    ],
)
def test_near_misses_pass(session: Session) -> None:
    assert only(MISSING_CACHE, session).status == "pass"


def test_it_says_why_it_passes_where_no_map_can_be_cached() -> None:
    finding = only(MISSING_CACHE, session_of(source(), batch()))
    assert (finding.status, finding.evidence) == ("pass", {"maps": 0})


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (missing_session_with(costly_map(), epochs=1), "read once"),
        (missing_session_with(costly_map(), epochs=None), "more than once is not known"),
        (
            missing_session_with(costly_map(element_bytes=None, bytes_per_element=None)),
            "would hold 10,000 elements, whose size was not measured",
        ),
        (missing_session_with(costly_map(element_bytes=10**6)), "9.3 GiB"),
        (
            missing_session_with(costly_map(), host=make_host(available_bytes=10**7)),
            "`.cache(path)`",
        ),
    ],
)
def test_only_informs_where_a_cache_can_not_be_advised(session: Session, words: str) -> None:
    finding = only(MISSING_CACHE, session)
    assert finding.status == "informative"


def test_what_was_not_measured_is_tried() -> None:
    finding = only(MISSING_CACHE, missing_session_with(costly_map(self_ms_per_step=None)))
    assert (finding.status, finding.edit is not None) == ("informative", True)
    assert only(MISSING_CACHE, make_session(pipeline=None)).status == "inconclusive"


def test_tries_a_cache_of_what_two_seconds_make() -> None:
    # 32 elements in 10 ms are 6400 in two seconds.
    assert only(MISSING_CACHE, missing_session_with(costly_map())).edit == Edit(
        id="missing-cache:map",
        label="cache behind the map in line 12",
        changes=(Insert("map", "cache", {"elements": 6400}),),
        caveat="Measured once the cache is full.",
    )


@pytest.mark.parametrize(
    ("step_ms", "count", "elements"), [(1.0, 10_000, 10_000), (1000.0, 10_000, 256)]
)
def test_the_cache_holds_eight_batches_at_least_and_all_at_most(
    step_ms: float, count: int, elements: int
) -> None:
    op = costly_map(cardinality=count, self_ms_per_step=0.8 * step_ms)
    breakdown = make_breakdown(step_ms)
    session = missing_session_with(op, steps=make_steps(mean_ms=step_ms), breakdown=breakdown)
    edit = only(MISSING_CACHE, session).edit
    assert edit is not None
    assert edit.changes == (Insert("map", "cache", {"elements": elements}),)


def test_what_a_cache_would_freeze_is_moved_behind_it() -> None:
    session = session_of(
        source(),
        make_operation("shuffle", "shuffle", line=2),
        make_operation("repeat", "repeat", line=3, parameters={"count": None}),
        costly_map(),
        batch(),
    )
    finding = only(MISSING_CACHE, session)
    assert finding.effect_on_results == "same up to order or rounding"
    assert finding.edit is not None
    # The cache comes last, between the map and the shuffle.
    assert finding.edit.changes == (
        Move("shuffle", "map"),
        Move("repeat", "shuffle"),
        Insert("map", "cache", {"elements": 6400}),
    )


@pytest.mark.parametrize("kind", ["interleave", "take", "batch"])
def test_a_shuffle_of_other_elements_is_not_moved(kind: str) -> None:
    shuffle = make_operation("shuffle", "shuffle", line=2)
    loop = make_loop(keras=make_keras(epochs=10))
    session = session_of(
        source(),
        shuffle,
        make_operation("other", kind),
        costly_map(cardinality=10_000),
        batch(),
        loops=[loop],
    )
    finding = only(MISSING_CACHE, session)
    assert (finding.status, finding.edit) == ("fail", None)
    assert "other elements than a cache would hold" in str(finding.trial.reason)


def test_a_shuffle_that_keeps_its_order_stays_above_the_cache() -> None:
    kept = {"reshuffle_each_iteration": False}
    session = session_of(
        source(),
        make_operation("shuffle", "shuffle", line=2, parameters=kept),
        make_operation("repeat", "repeat", line=3, parameters={"count": None}),
        costly_map(),
        batch(),
    )
    finding = only(MISSING_CACHE, session)
    assert finding.edit is not None
    assert Move("shuffle", "map") not in finding.edit.changes


@pytest.mark.parametrize("kind", ["flat_map", "interleave"])
def test_files_are_not_counted_as_the_elements_in_them(kind: str) -> None:
    files = source(cardinality=20)
    loops = [make_loop(keras=make_keras(epochs=10))]
    reading = make_operation("read", kind, line=3)
    session = session_of(files, reading, costly_map(), batch(), loops=loops)
    finding = only(MISSING_CACHE, session)
    assert finding.evidence["cache_bytes"] is None


def cache(**overrides: Any) -> Operation:
    return make_operation("cache", "cache", line=3, **overrides)


def test_a_cache_above_the_costly_map_keeps_none_of_its_results() -> None:
    """What stands above that cache stays there; only what is behind it would be frozen anew."""
    session = session_of(
        source(),
        make_operation("files", "shuffle", line=2),
        cache(),
        make_operation("shuffle", "shuffle", line=4),
        costly_map(cardinality=10_000),
        batch(),
        loops=[make_loop(keras=make_keras(epochs=10))],
    )
    finding = only(MISSING_CACHE, session)
    assert finding.status == "fail"
    assert finding.edit is not None
    assert finding.edit.changes == (
        Move("shuffle", "map"),
        Insert("map", "cache", {"elements": 6400}),
    )


def branches(*, cached: tuple[str, ...]) -> Session:
    """A costly map read by two branches that are zipped; some of them with a cache."""
    ends = []
    ops = [source(), costly_map(parent_ids=["source"])]
    for name in ("left", "right"):
        kind = "cache" if name in cached else "prefetch"
        ops.append(make_operation(name, kind, parent_ids=["map"]))
        ends.append(name)
    ops.append(make_operation("zip", "zip", parent_ids=ends))
    ops.append(batch().model_copy(update={"parent_ids": ["zip"]}))
    loops = [make_loop(keras=make_keras(epochs=10))]
    return make_session(pipeline=make_pipeline(ops=ops, bottleneck_op_id=None), loops=loops)


def test_a_cache_on_another_branch_is_none_on_the_way_to_the_loop() -> None:
    assert only(MISSING_CACHE, branches(cached=())).status == "fail"
    assert only(MISSING_CACHE, branches(cached=("left",))).status == "fail"
    assert only(MISSING_CACHE, branches(cached=("left", "right"))).status == "pass"


def test_a_cache_of_another_loop_s_pipeline_is_none_of_this_one() -> None:
    """Validation reads the same map: its cache stands on no way to the training loop."""
    session = missing_session_with(costly_map())
    assert session.pipeline is not None
    validation = cache(parent_ids=["map"])
    ops = [*session.pipeline.ops[:2], validation, *session.pipeline.ops[2:]]
    pipeline = session.pipeline.model_copy(update={"ops": ops})
    assert only(MISSING_CACHE, session.model_copy(update={"pipeline": pipeline})).status == "fail"
