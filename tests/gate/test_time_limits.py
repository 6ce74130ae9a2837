from __future__ import annotations

import pytest

from pipediag.gate.config import GateConfig, OnMachine
from pipediag.gate.evaluation import time_limit_checks
from pipediag.gate.formats import render
from pipediag.gate.result import Check
from pipediag.session.model import Session
from tests.factories import make_session
from tests.gate.formats.checks import make_result
from tests.records import make_steps


def only(session: Session, most: float, fingerprint: str = "0123456789abcdef") -> Check:
    limits = OnMachine(fingerprint=fingerprint, max_step_ms=most)
    (check,) = time_limit_checks([session], GateConfig(on_machine=limits))
    return check


@pytest.mark.parametrize(
    ("most", "outcome"), [(9.8, "fail"), (10.0, "inconclusive"), (10.1, "pass")]
)
def test_on_its_machine_the_step_is_limited(most: float, outcome: str) -> None:
    check = only(make_session(), most)
    assert (check.outcome, check.value, check.interval) == (outcome, 10.0, (9.9, 10.1))
    assert "10 ms (95 % interval 9.9 to 10.1 ms)" in check.sentence


def test_a_step_of_microseconds_is_not_rounded_away() -> None:
    steps = make_steps(mean_ms=0.0234, median_ms=0.0234, ci95_ms=(0.0231, 0.0238))
    check = only(make_session(steps=steps), 0.02)
    assert "0.0234 ms (95 % interval 0.0231 to 0.0238 ms)" in check.sentence
    assert "| 0.0234 ms | 0.0231 to 0.0238 ms | 0.02 ms |" in render(
        "markdown", [make_result(check)]
    )


def test_on_another_machine_nothing_is_decided() -> None:
    check = only(make_session(), 9.8, fingerprint="fedc")
    assert check.outcome == "inconclusive"
    assert check.sentence == (
        "Step was not measured: the session is of the machine 0123456789abcdef, and the limit is "
        "for fedc."
    )


def test_a_step_that_was_not_measured() -> None:
    check = only(make_session(steps=None, steps_missing="Too few."), 9.8)
    assert check.sentence == "Step was not measured: Too few."


def test_without_the_limit_nothing_is_asked() -> None:
    assert time_limit_checks([make_session()], GateConfig()) == []
