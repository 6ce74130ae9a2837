"""Questions about the recorded pipeline."""

from __future__ import annotations

import math

import pytest

from pipediag.facts.pipeline import (
    delay_ms,
    following_batch,
    last_before_prefetch,
    only_looks_up,
    operations,
    passes_over_data,
)
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_keras, make_loop, make_session
from tests.records import make_function, make_operation, make_pipeline, make_steps
from tests.rules.sessions import batch, session_of, source


def repeat(count: int | None) -> Operation:
    return make_operation("repeat", "repeat", parameters={"count": count})


def endless(
    *behind: Operation, steps_per_epoch: int | None, epochs: int = 10, rounds: int | None = None
) -> Session:
    keras = make_keras(epochs=epochs, steps_per_epoch=steps_per_epoch)
    loops = [make_loop(keras=keras, planned_rounds=rounds)]
    return session_of(source(), repeat(None), *behind, batch(), loops=loops)


def in_parts(steps_per_epoch: int, *, epochs: int) -> Session:
    keras = make_keras(epochs=epochs, steps_per_epoch=steps_per_epoch)
    return session_of(source(), batch(10, cardinality=1000), loops=[make_loop(keras=keras)])


def taken(count: int) -> Session:
    """A loop of the script's own, of one epoch."""
    take = make_operation("take", "take", cardinality=count)
    batches = batch(cardinality=count // 32)
    return session_of(source(), repeat(None), take, batches, loops=[make_loop(keras=None)])


def test_what_keras_adds_is_not_the_end_of_the_scripts_pipeline() -> None:
    weighted = make_operation("weighted", "map", made_by_framework=True)
    ahead = make_operation("ahead", "prefetch", made_by_framework=True)
    assert last_before_prefetch(session_of(source(), batch(), weighted, ahead)).id == "batch"
    arrays = [make_operation(one, one, made_by_framework=True) for one in ("slices", "map")]
    assert last_before_prefetch(session_of(*arrays, ahead)).id == "map"


@pytest.mark.parametrize(
    ("session", "passes"),
    [
        (session_of(source(), repeat(None)), math.inf),
        (session_of(source(), repeat(3)), 6),
        (session_of(source(), repeat(3), loops=[make_loop(keras=None)]), 3),
        (session_of(source(), loops=[make_loop(keras=None)]), None),
        (session_of(source(), loops=[make_loop(keras=None, iterators=4)]), 2),
        (session_of(source(), steps=make_steps(boundaries=1), loops=[make_loop(keras=None)]), 2),
        (session_of(source(), loops=[make_loop(keras=make_keras(epochs=1))]), 1),
        # `for round in range(50): model.fit(dataset, epochs=1)`
        (
            session_of(source(), loops=[make_loop(keras=make_keras(epochs=1), planned_rounds=50)]),
            50,
        ),
        # The same in a `while`, of which several rounds were seen, and one.
        (session_of(source(), loops=[make_loop(keras=make_keras(epochs=1), epoch_ends=3)]), 2),
        (session_of(source(), loops=[make_loop(keras=make_keras(epochs=1), iterators=2)]), 1),
        # 1,000 batches that Keras reads 100 at a time, in ten epochs, and in 25.
        (in_parts(100, epochs=10), 1),
        (in_parts(100, epochs=25), 2.5),
        (in_parts(1000, epochs=10), 10),
        # 10,000 examples, and ten epochs that take 3,200 and 32,000 of them together.
        (endless(steps_per_epoch=10), 1),
        (endless(steps_per_epoch=312, epochs=1, rounds=100), 100),
        (endless(steps_per_epoch=100), math.inf),
        (endless(steps_per_epoch=None), math.inf),
        (endless(make_operation("filter", "filter"), steps_per_epoch=10), math.inf),
        # `repeat().take(n)`: of half a pass, and of two.
        (taken(5_000), None),
        (taken(20_000), math.inf),
    ],
)
def test_passes_over_data(session: Session, passes: float | None) -> None:
    assert passes_over_data(session) == passes


@pytest.mark.parametrize(
    ("kind", "follows"),
    [
        *((kind, True) for kind in ("batch", "padded_batch", "ragged_batch")),
        *((kind, False) for kind in ("filter", "unbatch", "flat_map", "interleave", "window")),
        ("group_by_window", False),
    ],
)
def test_single_elements_are_followed_by_their_batch(kind: str, follows: bool) -> None:
    ops = source(), make_operation("map"), make_operation("cache", "cache")
    behind = [] if follows else [batch()]
    session = session_of(*ops, make_operation("other", kind), *behind)
    _, mapped, _, other, *_ = session.pipeline.ops
    assert following_batch(session, mapped) == (other if follows else None)
    assert not follows or following_batch(session, other) is None


def test_a_cost_is_read_where_the_operation_was_fused_into() -> None:
    fused = make_operation("map", self_ms_per_step=None, fused_into="batch")
    session = session_of(source(), fused, batch(self_ms_per_step=6.0, latency_ms_per_step=3.0))

    assert delay_ms(session, fused) == 3.0
    assert delay_ms(session, make_operation("alone", self_ms_per_step=4.0)) == 4.0
    assert delay_ms(session, make_operation("lost", fused_into="gone")) == 0.1
    zero = make_operation("zero", self_ms_per_step=4.0, latency_ms_per_step=0.0)
    assert delay_ms(session, zero) == 0.0


@pytest.mark.parametrize(
    "beside", ["EagerPyFunc", "ReadVariableOp", "RandomUniform", "LookupTableInsertV2"]
)
def test_only_looks_up_what_changes_nothing_beside(beside: str) -> None:
    looks_up = {"LookupTableFindV2": 1, "NotEqual": 1}
    assert only_looks_up(make_function(stateful=True, graph_ops=looks_up))
    assert not only_looks_up(make_function(stateful=True, graph_ops={**looks_up, beside: 1}))
    assert not only_looks_up(make_function(graph_ops={"Mul": 2}))
    assert not only_looks_up(None)


def test_what_helpers_make_is_the_users_and_what_keras_makes_for_itself_is_not() -> None:
    kerass = make_operation("own", "map", made_by_framework=True)
    helped = make_operation("images", "map", made_by_framework=True, helper="text_dataset")
    session = make_session(pipeline=make_pipeline(ops=[helped, kerass]))
    assert operations(session) == [helped]


def test_an_endless_repeat_that_is_zipped_with_an_end_is_no_endless_pass() -> None:
    """As `timeseries_dataset_from_array` repeats the whole array beside its windows."""
    repeat = make_operation("repeat", "repeat", cardinality=-1)
    zipped = make_operation("zip", "zip", parent_ids=["repeat"], cardinality=20)
    loop = make_loop(keras=make_keras(epochs=3))
    ended = make_session(pipeline=make_pipeline(ops=[repeat, zipped]), loops=[loop])
    assert passes_over_data(ended) == 3
    endless = make_session(pipeline=make_pipeline(ops=[repeat]), loops=[loop])
    assert passes_over_data(endless) == math.inf
