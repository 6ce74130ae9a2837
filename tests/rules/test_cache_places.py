from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.cache_places import MISPLACED_CACHE
from pipediag.session.edits import Edit, Move
from pipediag.session.pipeline import Operation
from tests.factories import make_keras, make_loop, make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, only, session_of, source


def cache(**overrides: Any) -> Operation:
    return make_operation("cache", "cache", line=5, **overrides)


def random_map(graph_ops: dict[str, int] | None = None) -> Operation:
    function = make_function(stateful=True, graph_ops=graph_ops or {"RandomUniform": 1})
    return make_operation("random", "map", line=4, function=function)


def shuffle(id: str = "shuffle") -> Operation:
    return make_operation(id, "shuffle", line=3, parameters={"buffer_size": 10_000})


def take(count: int) -> Operation:
    return make_operation("take", "take", line=6, parameters={"count": count})


@pytest.mark.parametrize(
    "graph_ops", [None, {"StatelessRandomUniformV2": 1, "ReadVariableOp": 1, "AssignVariableOp": 1}]
)
def test_a_random_map_above_is_wrong(graph_ops: dict[str, int] | None) -> None:
    finding = only(MISPLACED_CACHE, session_of(source(), random_map(graph_ops), cache(), batch()))
    assert (finding.status, finding.severity, finding.line) == ("fail", "error", 5)
    assert finding.evidence["random_operation"] == "random"


def test_with_one_epoch_it_does_no_harm_yet() -> None:
    loops = [make_loop(keras=make_keras(epochs=1))]
    session = session_of(source(), random_map(), cache(), batch(), loops=loops)
    assert only(MISPLACED_CACHE, session).status == "informative"


def test_a_random_map_behind_the_cache_passes() -> None:
    session = session_of(source(), cache(), random_map(), batch())
    assert only(MISPLACED_CACHE, session).status == "pass"


def test_stateless_random_of_the_element_passes() -> None:
    session = session_of(source(), random_map({"StatelessRandomUniformV2": 1}), cache(), batch())
    assert only(MISPLACED_CACHE, session).status == "pass"


def test_a_shuffle_above_freezes_the_order() -> None:
    finding = only(MISPLACED_CACHE, session_of(source(), shuffle(), cache(), batch()))
    assert (finding.status, finding.severity) == ("fail", "warn")


def test_a_second_shuffle_behind_passes() -> None:
    session = session_of(source(), shuffle(), cache(), shuffle("again"), batch())
    assert only(MISPLACED_CACHE, session).status == "pass"


def test_an_endless_repeat_above_never_completes() -> None:
    repeat = make_operation("repeat", "repeat", parameters={"count": None})
    finding = only(MISPLACED_CACHE, session_of(source(), repeat, cache(), batch()))
    assert finding.status == "fail"


def test_a_finite_repeat_above_passes() -> None:
    repeat = make_operation("repeat", "repeat", parameters={"count": 2})
    assert only(MISPLACED_CACHE, session_of(source(), repeat, cache(), batch())).status == "pass"


def test_a_take_behind_keeps_it_from_completing() -> None:
    finding = only(
        MISPLACED_CACHE, session_of(source(), cache(cardinality=10_000), take(100), batch())
    )
    assert finding.status == "fail"


@pytest.mark.parametrize("count", [-1, 10_000])
def test_a_take_of_everything_passes(count: int) -> None:
    session = session_of(source(), cache(cardinality=10_000), take(count), batch())
    assert only(MISPLACED_CACHE, session).status == "pass"


def test_padding_above_only_informs() -> None:
    padded = make_operation("padded", "padded_batch")
    finding = only(MISPLACED_CACHE, session_of(source(), padded, cache()))
    assert finding.status == "informative"


def test_without_a_cache_or_a_pipeline() -> None:
    assert only(MISPLACED_CACHE, session_of(source(), batch())).status == "not-applicable"
    assert only(MISPLACED_CACHE, make_session(pipeline=None)).status == "inconclusive"


def test_tries_the_cache_above_the_first_random_map() -> None:
    second = random_map().model_copy(update={"id": "second", "line": 7})
    session = session_of(source(), random_map(), shuffle(), second, cache(), batch())
    finding = only(MISPLACED_CACHE, session)
    assert finding.edit == Edit(
        id="misplaced-cache:cache",
        label="cache in line 5 moved above the map in line 4",
        changes=(Move("cache", "source"),),
        caveat="This mends results: what is measured is what that costs.",
    )


def test_tries_the_shuffle_or_the_repeat_behind_the_cache() -> None:
    repeat = make_operation("repeat", "repeat", line=4, parameters={"count": None})
    for op in (shuffle(), repeat):
        edit = only(MISPLACED_CACHE, session_of(source(), op, cache(), batch())).edit
        assert edit == Edit(
            id="misplaced-cache:cache",
            label=f"{op.kind} in line {op.line} moved behind the cache in line 5",
            changes=(Move(op.id, "cache"),),
            caveat="Measured once the cache is full.",
        )


def test_tries_the_take_above_the_cache() -> None:
    session = session_of(source(), cache(cardinality=10_000), take(100), batch())
    assert only(MISPLACED_CACHE, session).edit == Edit(
        id="misplaced-cache:cache",
        label="take in line 6 moved above the cache in line 5",
        changes=(Move("take", "source"),),
        check="equal",
        caveat="Measured once the cache is full.",
    )


def test_a_batch_between_keeps_the_take_in_place() -> None:
    finding = only(
        MISPLACED_CACHE, session_of(source(), cache(cardinality=10_000), batch(), take(100))
    )
    assert (finding.status, finding.edit) == ("fail", None)
    assert "takes other elements" in str(finding.trial.reason)


def mapped(id: str, line: int = 7) -> Operation:
    return make_operation(id, "map", line=line, function=make_function())


@pytest.mark.parametrize(
    ("ops", "changes"),
    [
        ((shuffle(), batch(), cache()), (Move("cache", "source"),)),
        (
            (shuffle(), mapped("parse"), batch(), mapped("scale"), cache()),
            (Move("cache", "parse"), Move("shuffle", "cache")),
        ),
    ],
)
def test_of_a_shuffle_above_the_batch_both_go_directly_above_it(
    ops: tuple[Operation, ...], changes: tuple[Move, ...]
) -> None:
    """Behind a cache of batches the shuffle would mix whole batches."""
    finding = only(MISPLACED_CACHE, session_of(source(), *ops))
    assert finding.effect_on_results == "mends results"
    assert finding.edit is not None
    assert finding.edit.changes == changes
    assert finding.edit.caveat == "This mends results: what is measured is what that costs."


def test_a_cache_moves_above_a_random_map_whatever_stands_between_but_a_take() -> None:
    moved = only(MISPLACED_CACHE, session_of(source(), random_map(), batch(), cache())).edit
    assert moved is not None
    assert moved.changes == (Move("cache", "source"),)
    kept = only(MISPLACED_CACHE, session_of(source(), random_map(), take(100), cache()))
    assert (kept.status, kept.edit) == ("fail", None)


@pytest.mark.parametrize("kind", ["interleave", "take"])
def test_a_shuffle_of_other_elements_stays_and_another_one_is_advised(kind: str) -> None:
    other = make_operation("other", kind, line=4)
    finding = only(MISPLACED_CACHE, session_of(source(), shuffle(), other, cache(), batch()))
    assert (finding.status, finding.edit) == ("fail", None)


def test_a_shuffle_of_the_framework_is_not_the_user_s_to_move() -> None:
    """As in `image_dataset_from_directory`, which shuffles paths, loads and batches."""
    made = {"made_by_framework": True, "line": 2}
    ops = [shuffle().model_copy(update=made), mapped("load"), batch()]
    own = [op.model_copy(update=made) for op in ops]
    finding = only(MISPLACED_CACHE, session_of(source(), *own, cache()))
    assert finding.status == "fail"
    assert finding.edit is None
    assert "within a call of its own" in str(finding.trial.reason)


def test_an_order_that_was_asked_for_passes() -> None:
    fixed = shuffle().model_copy(
        update={"parameters": {"buffer_size": 10, "reshuffle_each_iteration": False}}
    )
    assert only(MISPLACED_CACHE, session_of(source(), fixed, cache(), batch())).status == "pass"


def test_one_epoch_has_no_order_to_repeat() -> None:
    loops = [make_loop(keras=make_keras(epochs=1))]
    session = session_of(source(), shuffle(), cache(), batch(), loops=loops)
    assert only(MISPLACED_CACHE, session).status == "informative"


def test_what_never_completes_is_about_speed_and_what_freezes_about_results() -> None:
    repeat = make_operation("repeat", "repeat", parameters={"count": None})
    endless = only(MISPLACED_CACHE, session_of(source(), repeat, cache(), batch()))
    cut = only(MISPLACED_CACHE, session_of(source(), cache(cardinality=10_000), take(9), batch()))
    frozen = only(MISPLACED_CACHE, session_of(source(), shuffle(), cache(), batch()))
    random = only(MISPLACED_CACHE, session_of(source(), random_map(), cache(), batch()))
    subjects = [finding.subject for finding in (endless, cut, frozen, random)]
    assert subjects == ["speed", "speed", "correctness", "correctness"]
