from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import waiting_map_pool
from pipediag.session.edits import Edit, SetOptions, SetParameters
from pipediag.session.model import Session
from tests.factories import make_host, make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source

WAITING = make_host(lock_percent=1.0, threads={"tf_data": 4.0}, cores_busy=0.2)


def session_with(
    parameters: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
    **overrides: Any,
) -> Session:
    op = make_operation(
        "map",
        "map",
        self_ms_per_step=16.0,
        latency_ms_per_step=1.0,
        parameters={"num_parallel_calls": 16, **(parameters or {})},
        function=make_function(stateful=True, graph_ops={"PyFunc": 1}),
    )
    values = {"host": WAITING, **overrides}
    return session_of(source(), op, batch(), pipeline={"options": options or {}}, **values)


def test_fails_where_calls_wait_for_two_threads() -> None:
    finding = only(waiting_map_pool, session_with())
    assert finding.status == "fail"
    assert "private_threadpool_size = 16" in finding.advice
    # 16 ms of calls on two threads, (1 - 2/16) of that, is all of the 7 ms wait: the ceiling.
    assert finding.speedup_at_most == pytest.approx(3.33)
    assert finding.evidence["delay_ms_per_step"] == 8.0


@pytest.mark.parametrize(
    "session",
    [
        session_with(options={"threading.private_threadpool_size": 16}),
        session_with({"use_unbounded_threadpool": True}),
        session_with(host=make_host(lock_percent=5.0)),
        session_with(host=make_host(hot_python=[], lock_percent=5.0)),
        session_with(host=make_host(lock_percent=80.0)),
    ],
)
def test_near_misses_pass(session: Session) -> None:
    assert only(waiting_map_pool, session).status == "pass"


def test_a_serial_map_is_left_to_the_other_rule() -> None:
    session = session_with({"num_parallel_calls": None})
    assert only(waiting_map_pool, session).status == "not-applicable"


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    assert only(waiting_map_pool, session_with(**keeps_up())).status == "informative"


def test_missing_data_is_inconclusive() -> None:
    assert only(waiting_map_pool, session_with(host=None)).status == "inconclusive"
    unclear = make_host(lock_percent=None)
    assert only(waiting_map_pool, session_with(host=unclear)).status == "inconclusive"
    assert only(waiting_map_pool, make_session(pipeline=None)).status == "inconclusive"


def test_tries_a_pool_for_its_calls() -> None:
    assert only(waiting_map_pool, session_with()).edit == Edit(
        id="waiting-map-pool:map",
        label="16 threads and 16 parallel calls for the map in line 12",
        changes=(
            SetParameters("map", {"num_parallel_calls": 16}),
            SetOptions({"threading.private_threadpool_size": 16}),
        ),
    )
