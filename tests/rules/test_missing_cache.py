from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules import missing_cache
from pipediag.session.model import Operation, Session
from tests.factories import (
    make_function,
    make_host,
    make_keras,
    make_loop,
    make_operation,
    make_session,
)
from tests.rules.sessions import batch, keeps_up, only, session_of, source


def costly_map(**overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 32.0,
        "self_ms_per_step": 8.0,
        "element_bytes": 1000,
        "function": make_function(),
    }
    return make_operation("map", "map", **{**values, **overrides})


def session_with(op: Operation, *more: Operation, epochs: int | None = 10, **kw: Any) -> Session:
    loop = make_loop(keras=make_keras(epochs=epochs))
    return session_of(source(), op, *more, batch(), **{"loops": [loop], **kw})


def test_fails_and_predicts_the_mean_over_epochs() -> None:
    finding = only(missing_cache, session_with(costly_map()))
    assert finding.status == "fail"
    assert "directly behind `map` at line 12" in finding.advice
    # Of the 7 ms wait, the batch's 0.1 ms remain in nine of ten epochs.
    assert finding.predicted_speedup == pytest.approx(10 / (1 + 9 * 0.31), abs=0.001)
    assert finding.evidence["cache_bytes"] == 1e7
    assert finding.effect_on_results == "same results"


def test_a_python_function_may_not_be_deterministic() -> None:
    function = make_function(stateful=True, graph_ops={"PyFunc": 1})
    finding = only(missing_cache, session_with(costly_map(function=function)))
    assert finding.effect_on_results == "not safe here"
    assert "only if it does" in finding.advice


def test_shuffle_and_repeat_above_are_moved_behind() -> None:
    session = session_of(
        source(),
        make_operation("shuffle", "shuffle", line=2),
        make_operation("repeat", "repeat", line=3, parameters={"count": None}),
        costly_map(),
        batch(),
    )
    finding = only(missing_cache, session)
    assert finding.status == "fail"
    assert "move `shuffle` at line 2 and `repeat` at line 3 behind the cache" in finding.advice
    assert finding.evidence["passes_over_data"] == "unlimited"


@pytest.mark.parametrize(
    "session",
    [
        session_with(costly_map(), make_operation("cache", "cache")),
        session_with(costly_map(), make_operation("snapshot", "snapshot")),
        session_with(costly_map(function=make_function(graph_ops={"RandomUniform": 1}))),
        session_with(costly_map(self_ms_per_step=0.1)),
        session_with(costly_map(), **keeps_up()),
    ],
)
def test_near_misses_pass(session: Session) -> None:
    assert only(missing_cache, session).status == "pass"


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (session_with(costly_map(), epochs=1), "read once"),
        (session_with(costly_map(), epochs=None), "more than once is not known"),
        (session_with(costly_map(element_bytes=None, bytes_per_element=None)), "how large"),
        (session_with(costly_map(element_bytes=10**6)), "9.3 GiB"),
        (session_with(costly_map(), host=make_host(available_bytes=10**7)), "`.cache(path)`"),
    ],
)
def test_only_informs_where_a_cache_can_not_be_advised(session: Session, words: str) -> None:
    finding = only(missing_cache, session)
    assert finding.status == "informative"
    assert words in finding.advice


def test_missing_data_is_inconclusive() -> None:
    assert (
        only(missing_cache, session_with(costly_map(self_ms_per_step=None))).status
        == "inconclusive"
    )
    assert only(missing_cache, make_session(pipeline=None)).status == "inconclusive"
