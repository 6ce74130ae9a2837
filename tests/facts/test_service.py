"""Workers, CPUs, network and memory for a step, from measured service times."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.service import plan_service, step_of
from pipediag.facts.step import consumer_ms
from pipediag.session.model import Session
from tests.records import make_operation
from tests.rules.sessions import session_of
from tests.rules.test_input_service import measured


def served(**overrides: Any) -> Session:
    """A step of which 3 ms are no input, and whose batches of 1 MB take 9 ms to make."""
    batch = make_operation("batch", "batch", line=9, bytes_per_element=1e6)
    return session_of(batch).model_copy(update={"service": measured(**overrides)})


def test_a_step_takes_as_long_as_the_slowest_of_making_sending_and_the_rest() -> None:
    session = served()
    rest_ms = consumer_ms(session)
    assert rest_ms == pytest.approx(3.0, rel=0.01)
    one, two, many = (step_of(session.service, rest_ms, workers) for workers in (1, 2, 8))
    assert (one.ms, two.ms, many.ms) == pytest.approx((10.0, 5.0, 3.0), rel=0.01)
    for step in (one, two, many):
        assert step.least_ms <= step.ms <= step.most_ms


def test_a_plan_names_what_the_target_takes() -> None:
    plan = plan_service(served(), 5.0)
    assert plan.step.workers == 2
    assert plan.cores == pytest.approx(1.9 * 10.0 / 5.0)
    assert plan.bytes_per_s == pytest.approx(1e6 / 5e-3)
    assert plan.memory_bytes == 2 * 600 * 2**20


def test_without_a_target_the_step_is_to_be_that_of_free_input() -> None:
    plan = plan_service(served())
    assert (plan.step.workers, plan.step.ms) == (4, pytest.approx(3.0, rel=0.01))


def test_a_target_that_sending_or_the_rest_of_the_step_rules_out_has_no_workers() -> None:
    for session in (served(), served(send_ms=5.0)):
        plan = plan_service(session, 2.0)
        assert plan.step is None
        assert plan.least_ms in (pytest.approx(3.0, rel=0.01), 5.0)


def test_nothing_is_planned_where_no_service_was_measured() -> None:
    assert plan_service(session_of(make_operation("batch", "batch"))) is None
