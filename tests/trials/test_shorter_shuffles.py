"""Shuffle buffers that every block of a trial would have to fill anew."""

from __future__ import annotations

import pytest

from pipediag.session.edits import SetParameters
from pipediag.session.model import Session
from pipediag.trials.shorter_shuffles import SharedChanges, shorter_shuffles
from tests.factories import make_session
from tests.records import make_operation, make_pipeline, make_steps


def session(size: object, elements: float | None = 32.0, step_ms: float = 10.0) -> Session:
    """A shuffle with a buffer of that size, before a map that has one of the same name."""
    ops = [
        make_operation("shuffle", "shuffle", elements=elements, parameters={"buffer_size": size}),
        make_operation("map", "map", elements=elements, parameters={"buffer_size": size}),
    ]
    return make_session(pipeline=make_pipeline(ops=ops), steps=make_steps(mean_ms=step_ms))


def wanted(session: Session) -> int | None:
    """The size that the only changed shuffle gets."""
    changes = shorter_shuffles(session).changes
    if not changes:
        return None
    (change,) = changes
    assert isinstance(change, SetParameters)
    assert (change.op_id, list(change.parameters)) == ("shuffle", ["buffer_size"])
    size = change.parameters["buffer_size"]
    assert isinstance(size, int)
    return size


def test_a_buffer_holds_what_comes_in_a_quarter_of_a_second() -> None:
    # 32 elements in 10 ms are 3,200 in a second.
    assert wanted(session(100_000)) == 800
    assert wanted(session(801)) == 800


@pytest.mark.parametrize("size", [800, 799, 1])
def test_a_buffer_that_fills_as_quickly_stays(size: int) -> None:
    assert shorter_shuffles(session(size)) == SharedChanges((), ())


def test_where_steps_are_long_two_batches_are_kept() -> None:
    assert wanted(session(100_000, step_ms=2_000.0)) == 64


def test_a_buffer_is_never_empty() -> None:
    assert wanted(session(100, elements=0.1, step_ms=1_000.0)) == 1


@pytest.mark.parametrize(
    ("size", "elements"), [(None, 32.0), ("dataset.cardinality()", 32.0), (9999, None), (9999, 0.0)]
)
def test_what_is_not_known_is_not_changed(size: object, elements: float | None) -> None:
    assert wanted(session(size, elements)) is None


def test_a_session_without_steps_or_pipeline_has_no_shuffle_to_change() -> None:
    without_steps = session(100_000).model_copy(update={"steps": None})
    without_pipeline = session(100_000).model_copy(update={"pipeline": None})
    assert shorter_shuffles(without_steps) == shorter_shuffles(without_pipeline) == SharedChanges()


def test_what_was_changed_is_owned_up_to() -> None:
    assert shorter_shuffles(session(100_000)).caveats == (
        "Shuffle buffers were made smaller in all arms, as each block fills them anew.",
    )


def test_each_shuffle_is_changed_by_what_passes_through_it() -> None:
    ops = [
        make_operation(f"of_{n}", "shuffle", elements=n, parameters={"buffer_size": 10**6})
        for n in (1.0, 64.0)
    ]
    found = shorter_shuffles(make_session(pipeline=make_pipeline(ops=ops))).changes
    assert found == (
        SetParameters("of_1.0", {"buffer_size": 25}),
        SetParameters("of_64.0", {"buffer_size": 1600}),
    )
