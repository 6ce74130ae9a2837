from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import single_call_map
from pipediag.session.edits import Edit, SetParameters
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source


def a_map(calls: int | None = 1, **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "self_ms_per_step": 8.0,
        "parameters": {"num_parallel_calls": calls},
        "function": make_function(),
    }
    return make_operation("map", "map", **{**values, **overrides})


def test_fails_and_predicts() -> None:
    session = session_of(source(), a_map(), batch(), host=make_host(cores_busy=0.4))
    finding = only(single_call_map, session)
    assert finding.status == "fail"
    assert finding.speedup_at_most == pytest.approx(10 / 6, abs=0.001)
    assert finding.effect_on_results == "same results"


@pytest.mark.parametrize(
    "op", [a_map(None), a_map(-1), a_map(4), a_map(function=make_function(stateful=True))]
)
def test_other_maps_pass(op: Operation) -> None:
    assert only(single_call_map, session_of(source(), op, batch())).status == "pass"


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    session = session_of(source(), a_map(), batch(), **keeps_up())
    assert only(single_call_map, session).status == "informative"


def test_unmeasured_cost_is_inconclusive() -> None:
    session = session_of(source(), a_map(self_ms_per_step=None), batch())
    assert only(single_call_map, session).status == "inconclusive"


def test_missing_pipeline() -> None:
    assert only(single_call_map, make_session(pipeline=None)).status == "inconclusive"


def test_tries_autotuned_calls() -> None:
    finding = only(single_call_map, session_of(source(), a_map(), batch()))
    assert finding.edit == Edit(
        id="single-call-map:map",
        label="num_parallel_calls=AUTOTUNE on the map in line 12",
        changes=(SetParameters("map", {"num_parallel_calls": -1}),),
    )


def test_parallel_calls_are_bound_by_the_cpus_that_are_busy() -> None:
    session = session_of(source(), a_map(), batch(), host=make_host(cores_busy=1.8))
    assert only(single_call_map, session).speedup_at_most == pytest.approx(10 / 9, abs=0.001)
