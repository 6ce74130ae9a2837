"""What `missing-cache` says of a generator, of which nobody but its author knows what it gives."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import missing_cache
from pipediag.session.edits import Insert
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_keras, make_loop
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of


def generator(**overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 32.0,
        "self_ms_per_step": 8.0,
        "element_bytes": 12,
        "cardinality": None,
        "function": make_function(stateful=True, graph_ops={"PyFunc": 3}),
    }
    return make_operation("gen", "from_generator", **{**values, **overrides})


def session_with(*ops: Operation, epochs: int | None = 3, **overrides: Any) -> Session:
    loop = make_loop(keras=make_keras(epochs=epochs))
    return session_of(*ops, batch(), **{"loops": [loop], **overrides})


def test_it_is_tried_on_the_condition_that_the_data_stays_the_same() -> None:
    finding = only(missing_cache, session_with(generator(cardinality=1_000)))
    assert finding.status == "informative"
    # Of 10 ms, 7 of which are waiting, the batch's 0.1 ms of waiting remain: 3.1 ms.
    assert finding.evidence["at_most_if_the_same"] == pytest.approx(3.332, rel=0.001)
    assert finding.edit is not None
    assert finding.edit.changes == (Insert("gen", "cache", {"elements": 1_000}),)
    assert finding.condition == "if the generator yields the same data in every epoch"
    assert finding.effect_on_results == "not known"


def test_where_their_number_is_not_known_the_condition_names_how_many_fit() -> None:
    host = make_host(available_bytes=24_000)
    finding = only(missing_cache, session_with(generator(), host=host))
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
    finding = only(missing_cache, session_of(op, batch(), loops=[make_loop(keras=keras)]))
    assert (finding.status, finding.edit, finding.condition) == ("informative", None, None)
    assert "memory" in finding.advice


def test_endless_passes_have_no_first_one_to_count() -> None:
    endless = make_operation("repeat", "repeat", parameters={"count": None}, cardinality=-1)
    finding = only(missing_cache, session_with(generator(), endless, epochs=None))
    assert finding.evidence["passes_over_data"] == "unlimited"


def test_a_cheap_map_behind_it_does_not_hide_it() -> None:
    cheap = make_operation("map", "map", self_ms_per_step=0.1, function=make_function())
    finding = only(missing_cache, session_with(generator(), cheap))
    assert (finding.status, finding.op_id) == ("informative", "gen")


def test_a_costly_map_behind_it_goes_first() -> None:
    costly = make_operation(
        "map", "map", self_ms_per_step=6.0, element_bytes=12, function=make_function()
    )
    finding = only(missing_cache, session_with(generator(), costly))
    assert finding.op_id == "map"


def test_its_size_is_said_where_it_is_known() -> None:
    finding = only(missing_cache, session_with(generator(cardinality=1_000_000)))
    assert finding.evidence["cache_bytes"] == 12e6
    assert "It would take 11" in finding.advice


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (session_with(generator(), epochs=1), "read once"),
        (session_with(generator(), epochs=None), "more than once is not known"),
        (
            session_with(generator(cardinality=10**9), host=make_host(available_bytes=10**7)),
            "A cache would take",
        ),
        (
            session_with(generator(function=make_function(side_effect="it assigns `seen`"))),
            "which a cache would end: it assigns `seen`",
        ),
    ],
)
def test_what_stands_against_a_cache_is_said(session: Session, words: str) -> None:
    finding = only(missing_cache, session)
    assert finding.status == "pass"
    assert words in finding.advice


@pytest.mark.parametrize(
    "session",
    [
        session_with(generator(), **keeps_up()),
        session_with(generator(self_ms_per_step=0.1)),
        session_with(generator(), make_operation("cache", "cache")),
        session_with(generator(inside_function_of="outer")),
    ],
)
def test_of_one_that_costs_little_or_is_cached_nothing_is_said(session: Session) -> None:
    finding = only(missing_cache, session)
    assert (finding.status, finding.op_id) == ("pass", None)
