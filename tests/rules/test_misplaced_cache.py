from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules import misplaced_cache
from pipediag.session.edits import Edit, Move
from pipediag.session.model import Operation
from tests.factories import make_function, make_keras, make_loop, make_operation, make_session
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
    finding = only(misplaced_cache, session_of(source(), random_map(graph_ops), cache(), batch()))
    assert (finding.status, finding.severity, finding.line) == ("fail", "error", 5)
    assert "above `map` at line 4" in finding.advice
    assert finding.evidence["random_operation"] == "random"


def test_with_one_epoch_it_does_no_harm_yet() -> None:
    loops = [make_loop(keras=make_keras(epochs=1))]
    session = session_of(source(), random_map(), cache(), batch(), loops=loops)
    assert only(misplaced_cache, session).status == "informative"


def test_a_random_map_behind_the_cache_passes() -> None:
    session = session_of(source(), cache(), random_map(), batch())
    assert only(misplaced_cache, session).status == "pass"


def test_stateless_random_of_the_element_passes() -> None:
    session = session_of(source(), random_map({"StatelessRandomUniformV2": 1}), cache(), batch())
    assert only(misplaced_cache, session).status == "pass"


def test_a_shuffle_above_freezes_the_order() -> None:
    finding = only(misplaced_cache, session_of(source(), shuffle(), cache(), batch()))
    assert (finding.status, finding.severity) == ("fail", "warn")
    assert "the same order" in finding.title


def test_a_second_shuffle_behind_passes() -> None:
    session = session_of(source(), shuffle(), cache(), shuffle("again"), batch())
    assert only(misplaced_cache, session).status == "pass"


def test_an_endless_repeat_above_never_completes() -> None:
    repeat = make_operation("repeat", "repeat", parameters={"count": None})
    finding = only(misplaced_cache, session_of(source(), repeat, cache(), batch()))
    assert finding.status == "fail"
    assert "endless" in finding.title


def test_a_finite_repeat_above_passes() -> None:
    repeat = make_operation("repeat", "repeat", parameters={"count": 2})
    assert only(misplaced_cache, session_of(source(), repeat, cache(), batch())).status == "pass"


def test_a_take_behind_keeps_it_from_completing() -> None:
    finding = only(
        misplaced_cache, session_of(source(), cache(cardinality=10_000), take(100), batch())
    )
    assert finding.status == "fail"
    assert "take(100)" in finding.advice


@pytest.mark.parametrize("count", [-1, 10_000])
def test_a_take_of_everything_passes(count: int) -> None:
    session = session_of(source(), cache(cardinality=10_000), take(count), batch())
    assert only(misplaced_cache, session).status == "pass"


def test_padding_above_only_informs() -> None:
    padded = make_operation("padded", "padded_batch")
    finding = only(misplaced_cache, session_of(source(), padded, cache()))
    assert finding.status == "informative"


def test_without_a_cache_or_a_pipeline() -> None:
    assert only(misplaced_cache, session_of(source(), batch())).status == "not-applicable"
    assert only(misplaced_cache, make_session(pipeline=None)).status == "inconclusive"


def test_tries_the_cache_above_the_first_random_map() -> None:
    second = random_map().model_copy(update={"id": "second", "line": 7})
    session = session_of(source(), random_map(), shuffle(), second, cache(), batch())
    finding = only(misplaced_cache, session)
    assert "above `map` at line 4" in finding.advice
    assert finding.edit == Edit(
        id="misplaced-cache:cache",
        label="cache in line 5 moved above the map in line 4",
        changes=(Move("cache", "source"),),
        caveat="This mends results: what is measured is what that costs.",
    )


def test_tries_the_shuffle_or_the_repeat_behind_the_cache() -> None:
    repeat = make_operation("repeat", "repeat", line=4, parameters={"count": None})
    for op in (shuffle(), repeat):
        edit = only(misplaced_cache, session_of(source(), op, cache(), batch())).edit
        assert edit == Edit(
            id="misplaced-cache:cache",
            label=f"{op.kind} in line {op.line} moved behind the cache in line 5",
            changes=(Move(op.id, "cache"),),
            caveat="Measured once the cache is full.",
        )


def test_tries_the_take_above_the_cache() -> None:
    session = session_of(source(), cache(cardinality=10_000), take(100), batch())
    assert only(misplaced_cache, session).edit == Edit(
        id="misplaced-cache:cache",
        label="take in line 6 moved above the cache in line 5",
        changes=(Move("take", "source"),),
        check="equal",
        caveat="Measured once the cache is full.",
    )


def test_a_batch_between_keeps_them_in_place() -> None:
    for ops in (
        (shuffle(), batch(), cache()),
        (random_map(), batch(), cache()),
        (cache(cardinality=10_000), batch(), take(100)),
    ):
        finding = only(misplaced_cache, session_of(source(), *ops))
        assert (finding.status, finding.edit) == ("fail", None)
        assert "takes other elements" in str(finding.trial.reason)
