"""Upper bounds on a step's speed-up."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.relevance import (
    at_most_without,
    less_input,
    limited,
    parallel,
)
from pipediag.rules.step_overhead import HOST_OVERHEAD
from pipediag.session.findings import Finding
from pipediag.session.loops import Ceiling
from pipediag.session.model import Session
from pipediag.session.recording import Device
from pipediag.vocabulary import StepClass
from tests.factories import make_session
from tests.records import (
    make_breakdown,
    make_environment,
    make_input_wait,
    make_operation,
)
from tests.rules.sessions import cases

LOW = {"ceiling": Ceiling(speedup_if_input_free=1.5, ci95=None, next_bottleneck=None)}


def wait_of(ms: float, **overrides: Any) -> Session:
    """A step of 10 ms that waits so long, behind a map of as much."""
    return make_session(**{"breakdown": make_breakdown(off=0.0, input_wait=10.0 * ms), **overrides})


@pytest.mark.parametrize(
    ("session", "saved_ms", "on_cpu", "speedup"),
    [
        (wait_of(6.0), 5.0, False, 2.0),
        # Never more than the ceiling, nor less than nothing.
        (wait_of(6.0), 8.0, False, 3.5),
        (wait_of(6.0), -1.0, False, 1.0),
        (wait_of(6.0, **LOW, differential=None), 5.0, False, 1.5),
        # 1.2 of two CPUs are busy: 6 ms of the step remain, whatever is spread.
        (wait_of(6.0), 5.0, True, 1.667),
        (wait_of(6.0), 2.0, True, 1.25),
        (wait_of(6.0, host=None), 5.0, True, 2.0),
        (wait_of(6.0, ceiling=None), 5.0, False, None),
        (wait_of(6.0, steps=None), 5.0, False, None),
        (wait_of(6.0, breakdown=None), 5.0, False, None),
    ],
)
def test_less_input_leaves_the_rest_of_the_step(
    session: Session, saved_ms: float, on_cpu: bool, speedup: float | None
) -> None:
    assert less_input(session, saved_ms, on_cpu=on_cpu) == speedup


def failed(**overrides: Any) -> Finding:
    return HOST_OVERHEAD.finding("fail", "Do it.").model_copy(update=overrides)


PYTHON = make_session(breakdown=make_breakdown(off=0.0, dispatch=20.0, python=30.0))
ALL = make_session(breakdown=make_breakdown(off=0.0, python=100.0))
TWICE = Ceiling(speedup_if_input_free=2.0, next_bottleneck=None)
FOUGHT_FOR = make_session(input_wait=make_input_wait(contention="cpu"), ceiling=TWICE)


@cases(
    {
        "two classes": (PYTHON, ["dispatch", "python"], failed(), 2.0),
        "one class": (PYTHON, ["dispatch"], failed(), 1.25),
        "all of it": (ALL, ["python"], failed(), 100.0),
        "nothing": (make_session(), [], failed(), None),
        "no breakdown": (make_session(breakdown=None), ["python"], failed(), None),
        # The ceiling counts for input where there is one.
        "input": (make_session(), ["input_wait"], failed(), 3.5),
        "input on the same CPUs": (FOUGHT_FOR, ["input_wait"], failed(), 3.448),
        "input without a ceiling": (make_session(ceiling=None), ["input_wait"], failed(), 3.448),
        "input and dispatch": (make_session(), ["input_wait", "dispatch"], failed(), 100 / 22),
        "a pass": (make_session(), ["input_wait"], HOST_OVERHEAD.finding("pass"), None),
        "correctness": (make_session(), ["input_wait"], failed(subject="correctness"), None),
        "a bound of its own": (make_session(), ["input_wait"], failed(speedup_at_most=1.5), 1.5),
    },
    "session, frees, finding, at_most",
)
def test_a_limit_is_the_step_without_the_classes_that_the_advice_frees(
    session: Session, frees: list[StepClass], finding: Finding, at_most: float | None
) -> None:
    limit = limited(session, finding, frees).speedup_at_most
    assert limit == (at_most and pytest.approx(at_most, abs=0.001))


def test_a_bound_rests_on_the_upper_ends_of_what_was_measured() -> None:
    """As in a run whose ceiling was 7.33x (4.63 to 12.5x) and in which 9.36x were measured."""
    ceiling = Ceiling(speedup_if_input_free=7.33, ci95=(4.63, 12.5), next_bottleneck=None)
    shares = make_breakdown(off=0.0, input_wait=86.4, device_compute=13.6)
    wide = shares["input_wait"].model_copy(update={"ci95_percent": (78.4, 92.0)})
    session = wait_of(8.64, ceiling=ceiling, breakdown={**shares, "input_wait": wide})
    op = make_operation("m", latency_ms_per_step=8.64)
    assert limited(session, failed(), ["input_wait"]).speedup_at_most == 12.5
    assert (parallel(session, op, 16.0, on_cpu=False) or 0.0) > 9.36
    overhead = shares["device_compute"].model_copy(update={"ci95_percent": (10.0, 20.0)})
    computing = make_session(breakdown={**shares, "device_compute": overhead})
    found = limited(computing, failed(), ["device_compute"])
    assert found.speedup_at_most == pytest.approx(100 / 80, abs=0.001)


@pytest.mark.parametrize(
    ("overrides", "at_most"),
    [
        # Of a step that computes for 60 %: dispatch goes along where CPUs do both.
        ({}, 100 / 25),
        # So does input whose threads compute on the same CPUs.
        ({"input_wait": make_input_wait(contention="cpu")}, 100 / 15),
        ({"environment": make_environment(devices=[Device(name="/GPU:0", kind="GPU")])}, 100 / 40),
    ],
)
def test_what_waits_for_the_compute_on_the_same_cpus_goes_along_with_it(
    overrides: dict[str, Any], at_most: float
) -> None:
    breakdown = make_breakdown(
        off=0.0, input_wait=10.0, device_compute=60.0, dispatch=15.0, python=15.0
    )
    session = make_session(**{"breakdown": breakdown, **overrides})
    limit = limited(session, failed(), ["device_compute"]).speedup_at_most
    assert limit == pytest.approx(at_most, abs=0.001)
    assert at_most_without(session, 60.0) == limit
    assert at_most_without(session, 0.0) is None
