from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules import ordered_results
from pipediag.session.edits import Edit, SetOptions
from pipediag.session.model import Operation, Session
from tests.factories import make_function, make_host, make_operation, make_session
from tests.rules.sessions import batch, keeps_up, only, session_of, source

IDLE = make_host(cores_busy=0.6)


def parallel(kind: str = "interleave", **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "self_ms_per_step": 12.0,
        "latency_ms_per_step": 6.0,
        "parameters": {"num_parallel_calls": -1},
        **overrides,
    }
    return make_operation("op", kind, **values)


def session_with(op: Operation, **overrides: Any) -> Session:
    return session_of(source(), op, batch(), **{"host": IDLE, **overrides})


@pytest.mark.parametrize(
    "op", [parallel(), parallel("map"), parallel("map", parameters={}, parallelism=2)]
)
def test_idle_cpus_behind_ordered_results_are_tried_without_order(op: Operation) -> None:
    finding = only(ordered_results, session_with(op))
    assert (finding.status, finding.op_id) == ("informative", "op")
    assert finding.evidence["cpus_in_use_percent"] == 30.0
    assert finding.effect_on_results == "same up to order or rounding"
    assert finding.edit == Edit(
        id="ordered-results",
        label="deterministic = False",
        changes=(SetOptions({"deterministic": False}),),
    )


@pytest.mark.parametrize(
    "session",
    [
        session_with(parallel(), host=make_host(cores_busy=1.8)),
        session_with(parallel(latency_ms_per_step=0.2)),
        session_with(parallel(), **keeps_up()),
        session_with(
            parallel("map", function=make_function(stateful=True, graph_ops={"PyFunc": 1})),
            host=make_host(cores_busy=0.9, lock_percent=80.0),
        ),
    ],
)
def test_near_misses_pass(session: Session) -> None:
    assert only(ordered_results, session).status == "pass"


@pytest.mark.parametrize(
    "session",
    [
        session_with(parallel(parameters={})),
        session_with(parallel(parameters={"num_parallel_calls": 4, "deterministic": True})),
        session_with(parallel(), pipeline={"options": {"deterministic": False}}),
    ],
)
def test_serial_or_settled_order_is_not_its_matter(session: Session) -> None:
    assert only(ordered_results, session).status == "not-applicable"


def test_missing_data_is_inconclusive() -> None:
    unmeasured = parallel(self_ms_per_step=None, latency_ms_per_step=None)
    assert only(ordered_results, session_with(unmeasured)).status == "inconclusive"
    assert only(ordered_results, make_session(host=None)).status == "inconclusive"
