from __future__ import annotations

import pytest

from pipediag.gate.config import GateConfig
from pipediag.gate.result import Check
from pipediag.gate.step_limits import step_limit_checks
from pipediag.session.model import Session
from tests.factories import make_session
from tests.records import make_breakdown


def only_check(session: Session, config: GateConfig) -> Check:
    (check,) = step_limit_checks([session], config)
    return check


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        (20.0, "fail"),
        (68.9, "fail"),
        (69.0, "inconclusive"),
        (70.0, "inconclusive"),
        (70.9, "inconclusive"),
        (71.0, "pass"),
        (80.0, "pass"),
    ],
)
def test_input_wait_is_judged_by_its_whole_interval(limit: float, outcome: str) -> None:
    # The session's input wait is 70 %, interval 69 to 71 %.
    check = only_check(make_session(), GateConfig(max_input_wait_percent=limit))
    assert check.outcome == outcome
    assert (check.value, check.interval, check.limit) == (70.0, (69.0, 71.0), limit)


def test_a_broken_limit_points_to_the_line_of_the_verdict() -> None:
    check = only_check(make_session(), GateConfig(max_input_wait_percent=20))
    assert (check.file, check.line) == ("train.py", 12)
    assert check.sentence == (
        "Input wait: 70.0 % of the step (95 % interval 69.0 to 71.0 %), over the limit of 20 %."
    )


def test_a_straddled_limit_says_what_to_do() -> None:
    check = only_check(make_session(), GateConfig(max_input_wait_percent=70))
    assert check.sentence.endswith(
        "and the limit of 70 % lies inside the interval: too close to call. "
        "More steps (--steps) make the interval narrower."
    )


def test_overhead_adds_four_classes_and_their_intervals() -> None:
    session = make_session(
        breakdown=make_breakdown(
            input_wait=20.0, dispatch=4.0, python=3.0, compile=2.0, device_wait=6.0
        )
    )
    check = only_check(session, GateConfig(max_overhead_percent=10))
    assert check.value == pytest.approx(15.0)
    assert check.interval == pytest.approx((11.0, 19.0))
    assert check.outcome == "fail"


def test_a_missing_breakdown_is_inconclusive_with_its_reason() -> None:
    session = make_session(breakdown=None, breakdown_missing="The profiler was in use.")
    check = only_check(session, GateConfig(max_input_wait_percent=20))
    assert check.outcome == "inconclusive"
    assert check.value is None
    assert check.sentence == "Input wait was not measured: The profiler was in use."


def test_a_class_that_was_not_measured_is_not_zero() -> None:
    breakdown = {
        name: share for name, share in make_breakdown().items() if name in ("input_wait", "python")
    }
    config = GateConfig(max_overhead_percent=50, max_input_wait_percent=50)
    input_wait, overhead = step_limit_checks([make_session(breakdown=breakdown)], config)
    assert input_wait.outcome == "fail"
    assert overhead.outcome == "inconclusive"
    assert "lacks dispatch, compile, device_wait" in overhead.sentence


def test_without_limits_nothing_is_asked() -> None:
    assert step_limit_checks([make_session()], GateConfig()) == []


def test_ends_of_intervals_that_add_up_to_more_than_the_step_are_capped() -> None:
    """A share over 100 % would call a limit of 100 % too close to call."""
    shares = make_breakdown(dispatch=60.0, python=39.5)
    check = only_check(make_session(breakdown=shares), GateConfig(max_overhead_percent=100))
    assert check.interval == (97.5, 100.0)
    assert check.outcome == "pass"


def test_a_share_under_nothing_is_nothing() -> None:
    shares = make_breakdown(input_wait=1.0, device_compute=99.0)
    below = shares["input_wait"].model_copy(update={"ci95_percent": (-2.0, 3.0)})
    session = make_session(breakdown={**shares, "input_wait": below})
    check = only_check(session, GateConfig(max_input_wait_percent=0))
    assert check.interval == (0.0, 3.0)
    assert check.outcome == "inconclusive"


def test_what_was_not_measured_keeps_its_name_and_limit_and_can_stop_the_gate() -> None:
    session = make_session(breakdown=None, breakdown_missing=None)
    check = only_check(session, GateConfig(max_overhead_percent=20))
    assert (check.name, check.limit, check.severity) == ("max-overhead-percent", 20, "error")
    assert check.sentence.endswith("was not measured: the session has no breakdown of the step.")
