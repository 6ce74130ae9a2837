from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import nested_map
from pipediag.session.edits import Edit, SetParameters
from pipediag.session.model import Session
from tests.factories import make_host, make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source


def session_with(
    kind: str = "flat_map",
    calls: int | None = None,
    outer_calls: int | None = None,
    outer_ms: float | None = 8.0,
    **overrides: Any,
) -> Session:
    outer = make_operation(
        "outer",
        kind,
        line=4,
        self_ms_per_step=outer_ms,
        parameters={"num_parallel_calls": outer_calls},
    )
    inner = make_operation(
        "map",
        "map",
        self_ms_per_step=None,
        inside_function_of="outer",
        parameters={"num_parallel_calls": calls},
        function=make_function(),
    )
    session = session_of(source(), outer, batch(), **overrides)
    assert session.pipeline is not None
    pipeline = session.pipeline.model_copy(update={"ops": [*session.pipeline.ops, inner]})
    return session.model_copy(update={"pipeline": pipeline})


@pytest.mark.parametrize("kind", ["flat_map", "interleave"])
def test_fails_with_the_cost_of_the_outer_operation(kind: str) -> None:
    finding = only(nested_map, session_with(kind, host=make_host(cores_busy=0.4)))
    assert (finding.status, finding.op_id, finding.line) == ("fail", "map", 12)
    assert f"behind `{kind}` at line 4" in finding.advice
    assert finding.speedup_at_most == pytest.approx(10 / 6, abs=0.001)


def test_a_cost_that_the_model_forgot_is_read_at_the_outer_operation() -> None:
    session = session_with()
    assert session.pipeline is not None
    *others, inner = session.pipeline.ops
    inner = inner.model_copy(update={"self_ms_per_step": 0.2})
    pipeline = session.pipeline.model_copy(update={"ops": [*others, inner]})
    session = session.model_copy(update={"pipeline": pipeline})
    assert only(nested_map, session).evidence["delay_ms_per_step"] == 8.0


def test_parallel_ones_pass() -> None:
    assert only(nested_map, session_with(calls=-1)).status == "pass"
    assert only(nested_map, session_with("interleave", outer_calls=-1)).status == "pass"


def test_a_map_on_the_main_path_passes() -> None:
    assert (
        only(nested_map, session_of(source(), make_operation("m", "map"), batch())).status == "pass"
    )


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    assert only(nested_map, session_with(**keeps_up())).status == "informative"


def test_missing_data_is_inconclusive() -> None:
    assert only(nested_map, session_with(outer_ms=None)).status == "inconclusive"
    assert only(nested_map, make_session(pipeline=None)).status == "inconclusive"


def test_tries_parallel_calls_where_the_map_stands() -> None:
    assert only(nested_map, session_with()).edit == Edit(
        id="nested-map:map",
        label="num_parallel_calls=AUTOTUNE on the map in line 12",
        changes=(SetParameters("map", {"num_parallel_calls": -1}),),
        caveat="Measured with parallel calls on the map where it stands, not behind `flat_map` at "
        "line 4.",
    )
