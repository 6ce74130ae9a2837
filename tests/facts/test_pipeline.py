from __future__ import annotations

import math

import pytest

from pipediag.facts.pipeline import (
    between,
    downstream,
    following_batch,
    last_operation,
    passes_over_data,
    upstream,
)
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_keras, make_loop
from tests.records import make_operation, make_steps
from tests.rules.sessions import batch, session_of, source


def repeat(count: int | None) -> Operation:
    return make_operation("repeat", "repeat", parameters={"count": count})


def test_upstream_is_nearest_first_and_downstream_in_order() -> None:
    session = session_of(
        source(), make_operation("map"), make_operation("shuffle", "shuffle"), batch()
    )
    assert session.pipeline is not None
    first, second, third, last = session.pipeline.ops
    assert upstream(session, last) == [third, second, first]
    assert downstream(session, first) == [second, third, last]


def test_zip_has_both_branches_upstream() -> None:
    left, right = source(), make_operation("range", "range")
    session = session_of(left)
    zipped = make_operation("zip", "zip", parent_ids=["source", "range"])
    assert session.pipeline is not None
    pipeline = session.pipeline.model_copy(update={"ops": [left, right, zipped]})
    session = session.model_copy(update={"pipeline": pipeline})
    assert [op.id for op in upstream(session, zipped)] == ["source", "range"]
    assert following_batch(session, right) is None


@pytest.mark.parametrize(
    ("session", "passes"),
    [
        (session_of(source(), repeat(None)), math.inf),
        (session_of(source(), repeat(3)), 6),
        (session_of(source()), 2),
        (session_of(source(), repeat(3), loops=[make_loop(keras=None)]), 3),
        (session_of(source(), loops=[make_loop(keras=None)]), None),
        (session_of(source(), loops=[make_loop(keras=None, iterators=4)]), 2),
        (session_of(source(), steps=make_steps(seams=1), loops=[make_loop(keras=None)]), 2),
        (session_of(source(), loops=[make_loop(keras=make_keras(epochs=1))]), 1),
    ],
)
def test_passes_over_data(session: Session, passes: float | None) -> None:
    assert passes_over_data(session) == passes


def test_between_follows_one_chain_only() -> None:
    ops = [source(), make_operation("a", "map"), make_operation("b", "shuffle"), batch()]
    session = session_of(*ops)
    first, *_, last = session.pipeline.ops if session.pipeline else []
    found = between(session, first, last)
    assert [op.id for op in found or []] == ["a", "b"]
    assert between(session, last, first) is None
    zipped = last.model_copy(update={"parent_ids": ["b", "a"]})
    assert between(session, first, zipped) is None


def test_the_last_operation_is_one_that_was_written() -> None:
    injected = make_operation("injected", "prefetch", inserted_by_tensorflow=True)
    inner = make_operation("inner", "map", inside_function_of="source")
    last = last_operation(session_of(source(), batch(), inner, injected))
    assert last is not None
    assert last.id == "batch"
