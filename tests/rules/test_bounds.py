from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.bounds import (
    at_most_without,
    less_input,
    limited,
    overlapped,
    parallel,
    unexplained_factor,
)
from pipediag.rules.step_overhead import HOST_OVERHEAD
from pipediag.session.findings import Finding
from pipediag.session.loops import Ceiling
from pipediag.session.model import Session
from pipediag.session.recording import Device
from tests.factories import make_session
from tests.records import (
    make_breakdown,
    make_environment,
    make_input_wait,
    make_operation,
    make_pipeline,
)


def wait_of(ms: float, **overrides: Any) -> Session:
    """A step of 10 ms that waits so long, behind a map of as much."""
    return make_session(**{"breakdown": make_breakdown(off=0.0, input_wait=10.0 * ms), **overrides})


@pytest.mark.parametrize(
    ("saved_ms", "on_cpu", "speedup"),
    [
        # Of ten.
        (5.0, False, 2.0),
        # Never more than the ceiling, nor less than nothing.
        (8.0, False, 3.5),
        (-1.0, False, 1.0),
        # 1.2 of two CPUs are busy: 6 ms of the step remain, whatever is spread.
        (5.0, True, 1.667),
        (2.0, True, 1.25),
    ],
)
def test_less_input_leaves_the_rest_of_the_step(
    saved_ms: float, on_cpu: bool, speedup: float
) -> None:
    assert less_input(wait_of(6.0), saved_ms, on_cpu=on_cpu) == speedup


def test_less_input_stays_below_the_ceiling() -> None:
    ceiling = Ceiling(speedup_if_input_free=1.5, ci95=None, next_bottleneck=None)
    alone = {"ceiling": ceiling, "differential": None}
    assert less_input(wait_of(6.0, **alone), 5.0, on_cpu=False) == 1.5


def test_without_a_host_work_that_spreads_is_bound_by_nothing_else() -> None:
    assert less_input(wait_of(6.0, host=None), 5.0, on_cpu=True) == 2.0


@pytest.mark.parametrize("missing", ["ceiling", "steps", "breakdown"])
def test_without_a_ceiling_less_input_is_not_predicted(missing: str) -> None:
    assert less_input(wait_of(6.0, **{missing: None}), 5.0, on_cpu=False) is None


def test_parallel_calls_work_ahead_as_far_as_one_of_them_lasts() -> None:
    op = make_operation("m", latency_ms_per_step=4.0)
    assert parallel(wait_of(6.0), op, 2.0, on_cpu=False) == 1.667
    single = parallel(wait_of(6.0), op, 1.0, on_cpu=True)
    assert single is None
    unknown = make_operation("m", self_ms_per_step=None)
    assert parallel(wait_of(6.0), unknown, 2.0, on_cpu=False) is None


@pytest.mark.parametrize(("wait_ms", "speedup"), [(2.0, 1.25), (6.0, 1.667), (0.0, 1.0)])
def test_beside_the_step_the_longer_of_the_two_remains(wait_ms: float, speedup: float) -> None:
    assert overlapped(wait_of(wait_ms)) == speedup


@pytest.mark.parametrize("missing", ["steps", "breakdown"])
def test_nothing_is_overlapped_where_no_step_was_measured(missing: str) -> None:
    unknown = overlapped(wait_of(6.0, **{missing: None}))
    assert unknown is None


@pytest.mark.parametrize(("delay", "factor"), [(2.0, 3.0), (6.0, 1.0), (9.0, 1.0), (0.0, 1.0)])
def test_wait_that_no_delay_explains_is_shared_out(delay: float, factor: float) -> None:
    ops = [
        make_operation("m", self_ms_per_step=delay, fused_into="b"),
        make_operation("b", "batch", self_ms_per_step=delay, parent_ids=["m"]),
    ]
    session = wait_of(6.0, pipeline=make_pipeline(ops=ops))
    assert unexplained_factor(session) == factor
    assert unexplained_factor(wait_of(6.0, pipeline=None)) == 1.0


def unpredicted(**overrides: Any) -> Finding:
    return HOST_OVERHEAD.finding("fail", "Do it.").model_copy(update=overrides)


def test_a_limit_is_the_step_without_the_classes_that_the_advice_frees() -> None:
    session = make_session(breakdown=make_breakdown(off=0.0, dispatch=20.0, python=30.0))
    assert limited(session, unpredicted(), ["dispatch", "python"]).speedup_at_most == 2.0
    assert limited(session, unpredicted(), ["dispatch"]).speedup_at_most == 1.25
    all_of_it = make_session(breakdown=make_breakdown(off=0.0, python=100.0))
    assert limited(all_of_it, unpredicted(), ["python"]).speedup_at_most == 100.0


def test_the_limit_of_input_is_the_ceiling_where_there_is_one() -> None:
    assert limited(make_session(), unpredicted(), ["input_wait"]).speedup_at_most == 3.5
    fought_for = make_input_wait(contention="cpu")
    twice = Ceiling(speedup_if_input_free=2.0, next_bottleneck=None)
    session = make_session(input_wait=fought_for, ceiling=twice)
    assert limited(session, unpredicted(), ["input_wait"]).speedup_at_most == 3.448
    unknown = make_session(ceiling=None)
    assert limited(unknown, unpredicted(), ["input_wait"]).speedup_at_most == 3.448
    both = limited(make_session(), unpredicted(), ["input_wait", "dispatch"])
    assert both.speedup_at_most == pytest.approx(100 / 22, abs=0.001)


@pytest.mark.parametrize(
    "finding",
    [
        HOST_OVERHEAD.finding("pass", ""),
        unpredicted(subject="correctness"),
        unpredicted(speedup_at_most=1.5),
    ],
)
def test_what_is_predicted_or_no_matter_of_speed_has_no_limit(finding: Finding) -> None:
    assert limited(make_session(), finding, ["input_wait"]) == finding


def test_a_bound_rests_on_the_upper_ends_of_what_was_measured() -> None:
    """As in a run whose ceiling was 7.33x (4.63 to 12.5x) and in which 9.36x were measured."""
    ceiling = Ceiling(speedup_if_input_free=7.33, ci95=(4.63, 12.5), next_bottleneck=None)
    shares = make_breakdown(off=0.0, input_wait=86.4, device_compute=13.6)
    wide = shares["input_wait"].model_copy(update={"ci95_percent": (78.4, 92.0)})
    session = wait_of(8.64, ceiling=ceiling, breakdown={**shares, "input_wait": wide})
    op = make_operation("m", latency_ms_per_step=8.64)
    assert limited(session, unpredicted(), ["input_wait"]).speedup_at_most == 12.5
    assert (parallel(session, op, 16.0, on_cpu=False) or 0.0) > 9.36
    overhead = shares["device_compute"].model_copy(update={"ci95_percent": (10.0, 20.0)})
    computing = make_session(breakdown={**shares, "device_compute": overhead})
    found = limited(computing, unpredicted(), ["device_compute"])
    assert found.speedup_at_most == pytest.approx(100 / 80, abs=0.001)


def test_a_limit_of_nothing_is_not_said() -> None:
    assert limited(make_session(), unpredicted(), []).speedup_at_most is None
    assert limited(make_session(breakdown=None), unpredicted(), ["python"]).speedup_at_most is None


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
    finding = HOST_OVERHEAD.finding("fail", "Do it.")

    limit = limited(session, finding, ["device_compute"]).speedup_at_most
    assert limit == pytest.approx(at_most, abs=0.001)
    assert at_most_without(session, 60.0) == limit
    assert at_most_without(session, 0.0) is None


def test_the_limit_that_a_rule_gives_stays() -> None:
    finding = HOST_OVERHEAD.finding("fail", "Do it.", speedup_at_most=1.5)

    assert limited(make_session(), finding, ["device_compute"]).speedup_at_most == 1.5
