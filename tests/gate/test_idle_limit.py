from __future__ import annotations

import math
from typing import Any

import pytest

from pipediag.gate.config import GateConfig
from pipediag.gate.idle_limit import idle_limit_checks
from pipediag.gate.result import Check
from pipediag.session.devices import DeviceActivity, DeviceGap
from pipediag.session.model import Session
from pipediag.session.steps import Perturbation
from tests.factories import make_device, make_session


def gap(ms: float, step: int | None, line: int | None = None) -> DeviceGap:
    file = None if line is None else "train.py"
    return DeviceGap(start_ms=0.0, duration_ms=ms, cause="input", step=step, file=file, line=line)


def gpu(*gaps_ms: float, busy: float = 60.0, **overrides: Any) -> DeviceActivity:
    """Idle for the rest of 100 ms; a gap in each step."""
    values: dict[str, Any] = {
        "name": "GPU:0",
        "kind": "gpu",
        "busy_ms": busy,
        "idle_ms": 100.0 - busy,
        "busy_percent": busy,
        "idle_percent": 100.0 - busy,
        "gaps": [gap(ms, step) for step, ms in enumerate(gaps_ms)],
    }
    return make_device(**{**values, **overrides})


def session_with(*devices: DeviceActivity, ratio: float | None = 1.0) -> Session:
    perturbation = Perturbation(baseline_step_ms=10.0, profiled_step_ms=None, ratio=ratio)
    return make_session(devices=list(devices), perturbation=perturbation)


def only(*sessions: Session, most: float) -> Check:
    (check,) = idle_limit_checks(sessions, GateConfig(max_device_idle_percent=most))
    return check


STEADY = gpu(10.0, 10.0, 10.0, 10.0)


def test_nothing_is_said_where_there_is_no_limit() -> None:
    assert idle_limit_checks([session_with(STEADY)], GateConfig()) == []


@pytest.mark.parametrize(("most", "outcome"), [(39.9, "fail"), (40.0, "pass")])
def test_steps_that_are_alike_leave_nothing_open(most: float, outcome: str) -> None:
    check = only(session_with(STEADY), most=most)
    assert (check.outcome, check.value, check.interval) == (outcome, 40.0, (40.0, 40.0))
    assert check.sentence.startswith("Device idle (GPU:0): 40.0 % of the profile")


@pytest.mark.parametrize(("most", "outcome"), [(25, "fail"), (26, "inconclusive"), (55, "pass")])
def test_what_steps_differ_by_is_in_the_interval(most: float, outcome: str) -> None:
    check = only(session_with(gpu(8.0, 12.0, 8.0, 12.0)), most=most)
    # Of four with a spread of 2.31 ms the sum has an error of 4.62; Student's 3 degrees: 3.1824.
    reach = 3.1824 * math.sqrt(16.0 / 3.0) * 2.0
    assert check.interval == pytest.approx((40.0 - reach, 40.0 + reach), rel=1e-4)
    assert check.outcome == outcome


def test_what_the_profiler_may_have_put_in_is_in_the_interval() -> None:
    check = only(session_with(STEADY, ratio=1.5), most=20.0)
    # Of a step that natively took two thirds of the time, 60 % of the profile is 90 %.
    assert check.interval == pytest.approx((10.0, 40.0))
    assert check.outcome == "inconclusive"


@pytest.mark.parametrize("ratio", [None, 0.0, math.inf, math.nan])
def test_a_ratio_without_sense_changes_nothing(ratio: float | None) -> None:
    assert only(session_with(STEADY, ratio=ratio), most=50.0).interval == (40.0, 40.0)


@pytest.mark.parametrize(
    "device",
    [
        gpu(20.0, 20.0),
        gpu(4.0, 4.0, 4.0, 4.0),
        gpu(gaps=[gap(10.0, None)] * 4),
    ],
    ids=["too few steps", "most is in gaps that were not kept", "steps are not known"],
)
def test_one_run_whose_spread_is_not_known_decides_nothing(device: DeviceActivity) -> None:
    check = only(session_with(device), most=90.0)
    assert check.outcome == "inconclusive"
    assert "make several runs (--repeats 3)" in check.sentence


def test_runs_bring_their_own_spread() -> None:
    runs = [session_with(gpu(busy=busy, gaps=[gap(9.0, None)])) for busy in (60.0, 61.0, 62.0)]
    check = only(*runs, most=50.0)
    assert (check.outcome, check.value) == ("pass", 39.0)
    assert only(*runs, most=39.5).outcome == "inconclusive"


def test_a_device_without_gaps_is_known() -> None:
    assert only(session_with(gpu(busy=99.0, gaps=[])), most=1.0).outcome == "pass"


def test_the_idlest_device_counts_and_a_gpu_before_the_cpus() -> None:
    busier = gpu(3.0, 3.0, 3.0, 3.0, busy=88.0, name="GPU:1")
    check = only(session_with(make_device(idle_percent=90.0), busier, STEADY), most=50.0)
    assert check.sentence.startswith("Device idle (GPU:0): 40.0 %")
    assert only(session_with(make_device(gaps=[])), most=70.0).value == 80.0


def test_it_points_to_what_held_the_device_up_longest() -> None:
    gaps = [gap(9.0, 0, 7), gap(10.0, 1, 12), gap(11.0, 2), gap(10.0, 3, 9)]
    check = only(session_with(gpu(gaps=gaps)), most=5.0)
    assert (check.outcome, check.file, check.line) == ("fail", "train.py", 12)


def test_a_session_without_a_profile_is_inconclusive() -> None:
    check = only(session_with(), most=50.0)
    assert check.outcome == "inconclusive"
    assert check.sentence == (
        "Device idle was not measured: no device was seen at work in a profile."
    )
