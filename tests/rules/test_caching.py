"""Caches that are missing, and caches in a place where they freeze or never complete."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import pytest

from pipediag.rules.caching import MISSING_CACHE
from pipediag.rules.shuffling import MISPLACED_CACHE
from pipediag.session.edits import Insert, Move
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import FindingStatus
from tests.factories import make_keras, make_loop, make_session
from tests.ledgers import make_waits
from tests.records import (
    make_breakdown,
    make_function,
    make_input_wait,
    make_operation,
    make_pipeline,
    make_steps,
)
from tests.rules.sessions import (
    batch,
    cases,
    chain,
    changes,
    decides,
    epochs,
    keeps_up,
    only,
    session_of,
    source,
    tried,
)

PYTHON = {"PyFunc": 1}
SEEN = "it changes `seen`"


def op(id: str, kind: str | None = None, **overrides: Any) -> Operation:
    return make_operation(id, kind or id, **overrides)


def generator(**overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 32.0,
        "self_ms_per_step": 8.0,
        "element_bytes": 12,
        "cardinality": None,
        "function": make_function(stateful=True, graph_ops=PYTHON),
    }
    return op("gen", "from_generator", **{**values, **overrides})


def costly(**overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 32.0,
        "self_ms_per_step": 8.0,
        "element_bytes": 1000,
        "function": make_function(),
    }
    values |= overrides
    return op(values.pop("id", "map"), "map", **values)


def generated(*ops: Operation, count: int | None = 3, **overrides: Any) -> Session:
    return session_of(*ops, batch(), **{**epochs(count), **overrides})


def mapped(*ops: Operation, count: int | None = 10, **overrides: Any) -> Session:
    return session_of(source(), *ops, batch(), **{**epochs(count), **overrides})


def many_maps(*delays_ms: float, **of_last: Any) -> Session:
    maps = [costly(id=f"map{n}", self_ms_per_step=ms) for n, ms in enumerate(delays_ms)]
    maps[-1] = replace(maps[-1], **of_last)
    return mapped(*maps)


@cases(
    {
        "little work": (many_maps(0.1, 0.2, 0.1), ("pass", None)),
        "a costly one and little behind it": (many_maps(0.1, 6.0, 0.1), ("fail", "map1")),
        "a costly one and more behind it": (many_maps(3.0, 0.1, 2.0), ("fail", "map2")),
        "too large behind it": (many_maps(3.0, 2.0, element_bytes=1e12), ("fail", "map0")),
    },
    "session, found",
)
def test_a_cache_is_weighed_by_all_maps_that_it_replaces(
    session: Session, found: tuple[str, str | None]
) -> None:
    finding = only(MISSING_CACHE, session)
    changed = changes(finding) or ()
    after = next((one.after for one in changed if isinstance(one, Insert)), None)
    assert (finding.status, after) == found


def test_a_generator_is_tried_on_the_condition_that_the_data_stays_the_same() -> None:
    finding = only(MISSING_CACHE, generated(generator(cardinality=1_000)))
    assert finding.status == "informative"
    # Of 10 ms, 7 of which are waiting, the batch's 0.1 ms of waiting remain: 3.1 ms.
    assert finding.evidence["at_most_if_the_same_ratio"] == pytest.approx(3.332, rel=0.001)
    assert changes(finding) == (Insert("gen", "cache", {"elements": 1_000}),)
    assert finding.condition == "if the generator yields the same data in every epoch"
    assert finding.effect_on_results == "not known"
    known = only(MISSING_CACHE, generated(generator(cardinality=1_000_000)))
    assert known.evidence["cache_bytes"] == 12e6


CUT = make_loop(keras=make_keras(epochs=3, steps_per_epoch=100))


test_a_generator_that_is_not_tried = decides(
    MISSING_CACHE,
    {
        "of unknown size": (
            generated(generator(element_bytes=None, bytes_per_element=None)),
            "informative",
        ),
        "may have no end": (generated(generator(), loops=[CUT]), "informative"),
        "changes something": (
            generated(generator(function=make_function(side_effect=SEEN))),
            "pass",
        ),
        "inner": (generated(generator(inside_function_of="outer")), "pass"),
    },
)


def filled_by_a_generator(first_batches_s: float = 16.0) -> Session:
    """Epochs that wait while a shuffle is filled, in which the generator runs dry."""
    unseen = {"elements": None, "self_ms_per_step": None, "element_bytes": None}
    given = {
        "loops": [make_loop(keras=make_keras(epochs=10), epoch_ends=10, steps=1000, batch_size=32)],
        "run": make_waits(first_batches_s),
        "steps": make_steps(fill_ms=1600.0),
        **keeps_up(),
    }
    shuffle = op("shuffle", bytes_per_element=80.0)
    return session_of(generator(bytes_per_element=None, **unseen), shuffle, batch(), **given)


def test_a_generator_that_fills_a_shuffle_is_waited_for_by_first_batches() -> None:
    finding = only(MISSING_CACHE, filled_by_a_generator())
    assert (finding.status, finding.part) == ("informative", "epoch_start")
    assert changes(finding) == (Insert("gen", "cache", {"elements": 3_200}),)
    assert finding.evidence["cache_bytes"] == 3_200 * 80
    # Nine tenths of 16.05 s, of 20.05 s in all.
    gain = 20.05 / (20.05 - 0.9 * 16.05)
    assert finding.evidence["at_most_if_the_same_ratio"] == pytest.approx(gain, rel=0.01)
    assert finding.edit.whole_epoch
    assert only(MISSING_CACHE, filled_by_a_generator(0.01)).edit is None


def test_a_costly_map_fails_and_bounds_what_a_full_cache_buys() -> None:
    finding = only(MISSING_CACHE, mapped(costly()))
    assert finding.status == "fail"
    # Of the 7 ms wait, the batch's 0.1 ms remain.
    assert finding.speedup_at_most == pytest.approx(3.332, abs=0.001)
    assert finding.evidence["cache_bytes"] == 1e7
    assert finding.effect_on_results == "same results"
    # 32 elements in 10 ms are 6400 in two seconds.
    assert changes(finding) == (Insert("map", "cache", {"elements": 6400}),)


@pytest.mark.parametrize(
    ("contested", "status"), [(None, "pass"), (59.0, "informative"), (2.0, "pass")]
)
def test_a_trial_settles_what_two_clocks_say_of_the_wait(
    contested: float | None, status: FindingStatus
) -> None:
    wait = make_input_wait(native_percent=1.0, contested_by_percent=contested)
    kept = {"breakdown": make_breakdown(input_wait=1.0), "input_wait": wait}
    assert tried(only(MISSING_CACHE, mapped(costly(), **kept))) == (status, status != "pass")
    assert only(MISSING_CACHE, mapped(costly(self_ms_per_step=0.1), **kept)).status == "pass"


def from_files(*then: Operation, element_bytes: int | None = 100, **parameters: Any) -> Session:
    reader = op(
        "reader", "TFRecordDataset", elements=32.0, bytes_per_element=100.0, parameters=parameters
    )
    each = {} if element_bytes is not None else {"element_bytes": None, "bytes_per_element": None}
    return session_of(reader, costly(cardinality=None, **each), *then, batch(), **epochs(10))


def with_epoch_ends(session: Session, ends: int, **loop: Any) -> Session:
    diagnosed = session.diagnosed_loop()
    assert diagnosed is not None
    loops = [replace(diagnosed, epoch_ends=ends, steps=300, batch_size=32, **loop)]
    return session.but(loops=loops)


def test_an_epoch_that_was_seen_says_how_many_elements_files_hold() -> None:
    unknown = only(MISSING_CACHE, from_files())
    assert unknown.condition is not None
    assert "half of the free memory" in unknown.condition

    seen = only(MISSING_CACHE, with_epoch_ends(from_files(), 2))
    assert seen.condition is None
    # In 300 steps two epochs ended, so that none had more than 150.
    assert seen.evidence["cache_bytes"] == 150 * 32 * 1000
    repeated = with_epoch_ends(from_files(op("repeat")), 2)
    assert only(MISSING_CACHE, repeated).condition is not None


def test_only_what_a_filter_passes_is_kept() -> None:
    passes = op("filter", function=make_function(), element_bytes=1000, elements=32.0)
    session = with_epoch_ends(from_files(passes), 2)
    finding = only(MISSING_CACHE, session)
    assert finding.op_id == "filter"
    assert finding.edit.changes == (Insert("filter", "cache", {"elements": ANY}),)


RANDOM = {"RandomUniform": 1}


@cases(
    {
        "files of unknown size": (from_files(file_count=3), ("fail", True)),
        "too large": (mapped(costly(element_bytes=10**6)), ("informative", False)),
        "cached": (mapped(costly(), op("cache")), ("pass", False)),
        "random": (mapped(costly(function=make_function(graph_ops=RANDOM))), ("pass", False)),
        "cheap": (mapped(costly(self_ms_per_step=0.1)), ("pass", False)),
    },
    "session, expected",
)
def test_a_map_and_its_cache(session: Session, expected: tuple[str, bool]) -> None:
    assert tried(only(MISSING_CACHE, session)) == expected


@pytest.mark.parametrize(("side_effect", "effect"), [(None, "not known"), (SEEN, "not safe here")])
def test_python_may_not_be_deterministic_or_change_something(
    side_effect: str | None, effect: str
) -> None:
    function = make_function(stateful=True, graph_ops=PYTHON, side_effect=side_effect)
    finding = only(MISSING_CACHE, mapped(costly(function=function)))
    assert finding.effect_on_results == effect
    assert finding.condition is not None
    assert (finding.edit is None) == (side_effect is not None)


CACHED = Insert("map", "cache", {"elements": 6400})
SHUFFLE = op("shuffle", line=2)
ENDLESS = op("repeat", line=3, parameters={"count": None})
ALL = costly(cardinality=10_000)


test_what_a_cache_would_freeze_is_moved_behind_it = decides(
    MISSING_CACHE,
    {
        # The cache comes last, between the map and the shuffle.
        "shuffle and repeat": (
            session_of(source(), SHUFFLE, ENDLESS, costly(), batch()),
            ("fail", (Move("shuffle", "map"), Move("repeat", "shuffle"), CACHED)),
        ),
        "interleave": (mapped(SHUFFLE, op("other", "interleave"), ALL), "fail"),
        # Files stay in the order of the first epoch, where their elements are mixed anew.
        "interleave and shuffle": (
            session_of(
                source(), SHUFFLE, op("other", "interleave"), ALL, op("mixes", "shuffle"), batch()
            ),
            ("fail", (CACHED,)),
        ),
        # What stands above a cache stays there; only what is behind it would be frozen anew.
        "cache above": (
            mapped(op("files", "shuffle"), op("cache"), op("shuffle", line=4), ALL),
            ("fail", (Move("shuffle", "map"), CACHED)),
        ),
    },
)


def listed(*behind: Operation, **parameters: Any) -> Session:
    """Files that are listed, read by a map, and made into batches."""
    files = op("files", "list_files", cardinality=10_000, parameters=parameters)
    return session_of(files, ALL, *behind, batch(), **epochs(10))


ONE_ORDER = "if one order of the files serves all epochs"


@cases(
    {
        "each epoch": (listed(), (True, ONE_ORDER, "same up to order or rounding")),
        "one order": (listed(shuffle=False), (True, None, "same results")),
        "mixed behind": (listed(SHUFFLE), (True, None, "same up to order or rounding")),
        "zipped": (listed(op("zip")), (False, None, "not safe here")),
        "mixed and zipped": (listed(SHUFFLE, op("zip")), (False, None, "not safe here")),
    },
    "session, expected",
)
def test_an_order_of_listed_files_that_a_cache_would_freeze(
    session: Session, expected: tuple[bool, str | None, str]
) -> None:
    finding = only(MISSING_CACHE, session)
    assert finding.status == "fail"
    condition = finding.condition if finding.edit is not None else None
    assert (finding.edit is not None, condition, finding.effect_on_results) == expected


def test_work_behind_the_batch_leaves_a_cache_where_it_can_be_written() -> None:
    """The shuffle before it can move behind the first map, and not behind the batch."""
    behind = costly(id="words", elements=1.0, self_ms_per_step=6.0, cardinality=313)
    session = session_of(source(), SHUFFLE, costly(), batch(), behind, **epochs(10))
    changed = only(MISSING_CACHE, session).edit.changes
    assert [getattr(one, "after", None) for one in changed] == ["map", "map"]


FEW = op("few", "take", parameters={"count": 100}, element_bytes=32_000)
ALL_BATCHES = op("few", "take", parameters={"count": 313})
BATCHES = replace(batch(), cardinality=313)


def in_part(*behind: Operation) -> Session:
    return session_of(source(), costly(), *behind, **epochs(10))


test_a_cache_before_a_take_never_completes = decides(
    MISSING_CACHE,
    {
        "batches": (in_part(BATCHES, FEW), ("fail", (Insert("few", "cache", {"elements": ANY}),))),
        "all": (in_part(BATCHES, ALL_BATCHES), ("fail", (CACHED,))),
        "some of a repeat": (in_part(BATCHES, ENDLESS, FEW), ("fail", (CACHED,))),
        # Another choice in each epoch, which a cache behind the take would freeze.
        "drawn": (session_of(source(), SHUFFLE, costly(), FEW, **epochs(10)), "informative"),
        "of a generator": (
            generated(generator(), FEW),
            ("informative", (Insert("few", "cache", {"elements": ANY}),)),
        ),
    },
)


@pytest.mark.parametrize(
    ("cached", "status"), [((), "fail"), (("left",), "fail"), (("left", "right"), "pass")]
)
def test_a_cache_on_another_branch_is_none_on_the_way_to_the_loop(
    cached: tuple[str, ...], status: FindingStatus
) -> None:
    """Two branches read the map, and are zipped."""
    ends = ("left", "right")
    both = [op(one, "cache" if one in cached else "prefetch", parent_ids=["map"]) for one in ends]
    ops = [source(), costly(parent_ids=["source"]), *both, op("zip", parent_ids=list(ends))]
    ops.append(replace(batch(), parent_ids=["zip"]))
    pipeline = make_pipeline(ops=ops, bottleneck_op_id=None)
    assert only(MISSING_CACHE, make_session(pipeline=pipeline, **epochs(10))).status == status


# Where caches stand


def cache(**overrides: Any) -> Operation:
    return op("cache", line=5, **overrides)


def random_map(graph_ops: dict[str, int] = RANDOM) -> Operation:
    return op("random", "map", line=4, function=make_function(stateful=True, graph_ops=graph_ops))


def placed(*ops: Operation, **overrides: Any) -> Session:
    return session_of(source(), *ops, **overrides)


def take(count: int) -> Operation:
    return op("take", line=6, parameters={"count": count})


FULL = cache(cardinality=10_000)
IN_FILE = cache(parameters={"filename": "/tmp/train.cache"})
PART = {"parameters": {"count": 50}}


def split(other: Operation) -> Session:
    """Training takes 100 elements of a cache, and the validation reads another part of it."""
    ops = chain(source(), FULL, replace(other, parent_ids=["cache"]))
    validation = make_loop(id="loop_1", role="validation", pipeline=make_pipeline(ops=ops))
    return placed(FULL, take(100), loops=[make_loop(), validation])


STATELESS = {"StatelessRandomUniformV2": 1}
ABOVE = ("fail", (Move("cache", "source"),))
OF_THE_FRAMEWORK = [
    replace(one, made_by_framework=True, line=2)
    for one in (op("shuffle"), op("load", "map", function=make_function()), batch())
]


test_where_a_cache_stands = decides(
    MISPLACED_CACHE,
    {
        "random above": (placed(random_map(), cache()), ABOVE),
        # Files of an earlier run would be read as what is cached then.
        "random above a file": (placed(random_map(), IN_FILE), "fail"),
        "one epoch of random": (placed(random_map(), cache(), **epochs(1)), "informative"),
        "random of the element": (placed(random_map(STATELESS), cache()), "pass"),
        "shuffle above": (placed(op("shuffle"), cache()), ("fail", (Move("shuffle", "cache"),))),
        # Behind a cache of batches the shuffle would mix whole batches.
        "shuffle above the batch": (placed(op("shuffle"), batch(), cache()), ABOVE),
        "shuffled interleave": (placed(op("shuffle"), op("other", "interleave"), cache()), "fail"),
        "of the framework": (placed(*OF_THE_FRAMEWORK, cache()), "fail"),
        "endless repeat": (placed(ENDLESS, cache()), ("fail", (Move("repeat", "cache"),))),
        "listed files": (session_of(op("files", "list_files"), cache()), "pass"),
        "take behind": (placed(FULL, take(100)), "fail"),
        "read to its end for the validation": (split(op("skip")), "pass"),
        "read in part for the validation": (split(op("part", "take", **PART)), "fail"),
        "take of all": (placed(FULL, take(10_000)), "pass"),
    },
)
