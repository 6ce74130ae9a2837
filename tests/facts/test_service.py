"""Workers, CPUs, network and memory for a step, from measured service times."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.service import StepWith, most_of_a_service, plan_service, step_of
from pipediag.session.model import Session
from tests.records import make_operation
from tests.rules.sessions import session_of
from tests.rules.test_input_service import measured


def served(size: float = 1e6, elements: float = 1.0, **overrides: Any) -> Session:
    """A step of which 3 ms are no input, and whose batches of 1 MB take 9 ms to make."""
    batch = make_operation("batch", "batch", line=9, bytes_per_element=size, elements=elements)
    return session_of(batch).model_copy(update={"service": measured(**overrides)})


@pytest.mark.parametrize(
    ("service", "workers", "link_ms", "least_ms", "ms", "most_ms"),
    [
        # Made in 9 ms, by a worker that asks for its share in 10, sent in 1.
        ({}, 1, 0.0, 9.0, 10.0, 12.0),
        ({}, 2, 0.0, 4.5, 5.0, 6.0),
        # The rest of the step, in which nothing may be unpacked.
        ({}, 8, 0.0, 3.0, 3.0, 4.0),
        # The link: in turn with making at the most, and however many workers there are.
        ({}, 1, 20.0, 20.0, 20.0, 32.0),
        ({}, 8, 20.0, 20.0, 20.0, 24.0),
        # Sending.
        ({"send_ms": 6.0}, 2, 0.0, 4.5, 6.0, 9.0),
        # A worker that was no slower than the pipeline by itself asks for nothing.
        ({"served_ms": 8.0}, 1, 0.0, 9.0, 9.0, 10.0),
    ],
)
def test_a_step_is_as_long_as_its_slowest_part_and_at_most_as_those_in_turn(
    service: dict[str, float],
    workers: int,
    link_ms: float,
    least_ms: float,
    ms: float,
    most_ms: float,
) -> None:
    step = step_of(measured(**service), 3.0, workers, link_ms)
    assert step == StepWith(workers, ms, least_ms, most_ms)


def test_the_link_is_taken_to_carry_the_bytes_of_a_step_at_ten_gigabits_a_second() -> None:
    assert plan_service(served(), 20.0).step.most_ms == pytest.approx(12.8, rel=0.01)
    for slow in (served(size=1e7), served(size=1e5, elements=100.0)):
        plan = plan_service(slow, 7.0)
        assert (plan.step, plan.least_ms) == (None, pytest.approx(8.0))
        # What a faster link would give is not ruled out.
        assert most_of_a_service(slow) == most_of_a_service(served())


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
