from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import ordered_results
from pipediag.session.edits import Edit, SetOptions
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source

WAITING = make_host(
    lock_percent=1.0, threads={"tf_data": 4.0}, cores_busy=0.2, io_wait_percent=30.0
)
SLEEPS = make_function(stateful=True, graph_ops={"PyFunc": 1})


def parallel(kind: str = "interleave", **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "self_ms_per_step": 12.0,
        "latency_ms_per_step": 6.0,
        "parameters": {"num_parallel_calls": -1},
        **overrides,
    }
    return make_operation("op", kind, **values)


def session_with(op: Operation, **overrides: Any) -> Session:
    return session_of(source(), op, batch(), **{"host": WAITING, **overrides})


def sleeping(**parameters: Any) -> Operation:
    values = {"num_parallel_calls": 16, "use_unbounded_threadpool": True, **parameters}
    return parallel("map", function=SLEEPS, parameters=values)


@pytest.mark.parametrize("op", [parallel(), sleeping()])
def test_ordered_results_of_calls_that_wait_are_tried_without_order(op: Operation) -> None:
    finding = only(ordered_results, session_with(op))
    assert (finding.status, finding.op_id) == ("informative", "op")
    assert finding.effect_on_results == "same up to order or rounding"
    assert finding.edit == Edit(
        id="ordered-results",
        label="deterministic = False",
        changes=(SetOptions({"deterministic": False}),),
    )


@pytest.mark.parametrize(
    "session",
    [
        session_with(parallel(), host=make_host(io_wait_percent=1.0)),
        session_with(parallel(latency_ms_per_step=0.2)),
        session_with(parallel(), **keeps_up()),
        session_with(parallel("map", function=make_function())),
        # The pool limits these calls, which is another rule's matter.
        session_with(sleeping(use_unbounded_threadpool=False)),
        session_with(sleeping(), host=make_host(lock_percent=80.0)),
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


def test_calls_that_fill_places_of_a_batch_wait_for_no_order() -> None:
    fused = sleeping().model_copy(update={"fused_from": ["batch"]})
    assert only(ordered_results, session_with(fused)).status == "not-applicable"
    with_another = sleeping().model_copy(update={"fused_from": ["source"]})
    assert only(ordered_results, session_with(with_another)).status == "informative"


def test_missing_data_is_inconclusive() -> None:
    unmeasured = parallel(self_ms_per_step=None, latency_ms_per_step=None)
    assert only(ordered_results, session_with(unmeasured)).status == "inconclusive"
    assert only(ordered_results, make_session(host=None)).status == "inconclusive"
