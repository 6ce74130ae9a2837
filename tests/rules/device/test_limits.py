"""What a limit says holds from the limit on: rules of this folder at it, and just short of it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from pipediag.facts.limits import (
    INPUT_GAPS,
    PERTURBED,
)
from pipediag.rules.device import (
    device_straggler,
    exposed_host_copy,
    input_gap,
    launch_bound,
    mixed_precision,
    python_gap,
    small_kernels,
    sync_point,
)
from pipediag.rules.device.relevance import SHORTEST_HOST_GAP_US, UNDER_FLOOR
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.steps import Perturbation
from pipediag.vocabulary import GapCause
from tests.rules.devices import copies, gap, gpu, launches, on_devices, session_on, under_floor
from tests.rules.limits import SHORT_OF_IT, Limit, names_of, stands
from tests.rules.sessions import only


def of_device(rule: ModuleType, cause: GapCause) -> Callable[[float], Finding]:
    return lambda percent: on_devices(rule, gpu({cause: percent}, gaps=[]))


def with_launches(idle: float = 40.0, **overrides: Any) -> DeviceActivity:
    return gpu({"launch": idle}, gaps=[], launches=launches(**overrides))


def perturbed(ratio: float) -> Session:
    slowed = Perturbation(baseline_step_ms=10.0, profiled_step_ms=10.0 * ratio, ratio=ratio)
    return session_on(gpu({"sync": 20.0}), perturbation=slowed)


def two_gpus(slow_busy: float, fast_busy: float) -> Finding:
    def device(name: str, busy: float) -> DeviceActivity:
        return gpu({"collective": 100.0 - busy}, name=name, gaps=[], collective_ms=10.0)

    return on_devices(device_straggler, device("GPU:0", slow_busy), device("GPU:1", fast_busy))


LIMITS = [
    Limit(sync_point, sync_point.IDLE, of_device(sync_point, "sync"), "fail", "pass"),
    Limit(python_gap, python_gap.IDLE, of_device(python_gap, "python"), "fail", "pass"),
    Limit(
        python_gap,
        python_gap.ONE_PAUSE,
        lambda percent: on_devices(
            python_gap, gpu({"python": 40.0}, gaps=[gap("python", 0.4 * percent)])
        ),
        "informative",
        "fail",
    ),
    Limit(launch_bound, launch_bound.IDLE, of_device(launch_bound, "launch"), "fail", "pass"),
    Limit(
        launch_bound,
        launch_bound.DELAY,
        lambda us: on_devices(launch_bound, with_launches(median_delay_us=us)),
        "informative",
        "fail",
    ),
    Limit(input_gap, input_gap.IDLE, of_device(input_gap, "input"), "fail", "pass"),
    Limit(
        exposed_host_copy,
        exposed_host_copy.EXPOSED,
        lambda ms: on_devices(exposed_host_copy, gpu(copies=[copies(exposed_ms=ms)])),
        "fail",
        "pass",
    ),
    Limit(
        exposed_host_copy,
        INPUT_GAPS,
        lambda idle: on_devices(
            exposed_host_copy, gpu({"input": idle}, copies=[copies(exposed_ms=20.0)])
        ),
        "informative",
        "fail",
    ),
    Limit(
        small_kernels,
        small_kernels.SHORT,
        lambda short: on_devices(small_kernels, with_launches(shorter_than_launch_percent=short)),
        "fail",
        "pass",
    ),
    Limit(
        small_kernels,
        small_kernels.IDLE,
        lambda idle: on_devices(
            small_kernels, with_launches(idle, shorter_than_launch_percent=80.0)
        ),
        "fail",
        "informative",
    ),
    Limit(
        small_kernels,
        small_kernels.FEWEST,
        lambda count: on_devices(
            small_kernels, with_launches(matched=int(count), shorter_than_launch_percent=80.0)
        ),
        "fail",
        "inconclusive",
    ),
    Limit(
        sync_point,
        UNDER_FLOOR,
        lambda ms: on_devices(sync_point, under_floor(ms)),
        "inconclusive",
        "pass",
    ),
    Limit(
        sync_point,
        PERTURBED,
        lambda ratio: only(sync_point, perturbed(ratio)),
        "inconclusive",
        "fail",
    ),
    Limit(
        device_straggler,
        device_straggler.WAITING,
        lambda waiting: two_gpus(100.0, 100.0 - waiting),
        "informative",
        "pass",
    ),
    Limit(
        device_straggler,
        device_straggler.RATIO,
        lambda ratio: two_gpus(75.0 * ratio, 75.0),
        "fail",
        "informative",
    ),
    Limit(
        mixed_precision,
        mixed_precision.MATMUL,
        lambda percent: on_devices(mixed_precision, gpu(matmul_ms=percent, tensor_core_ms=0.0)),
        "fail",
        "pass",
    ),
    Limit(
        mixed_precision,
        mixed_precision.TENSOR_CORE,
        lambda ms: on_devices(mixed_precision, gpu(matmul_ms=100.0, tensor_core_ms=ms)),
        "pass",
        "fail",
    ),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_it_holds_from_the_limit_on(limit: Limit) -> None:
    stands(limit)


def test_idle_time_that_is_half_unexplained_may_be_anything() -> None:
    half = under_floor(20.0, idle_ms=40.0)
    assert on_devices(sync_point, half).status == "inconclusive"
    less = under_floor(20.0, idle_ms=40.1)
    assert on_devices(sync_point, less).status == "pass"


def test_a_floor_that_such_gaps_outlast_hides_none() -> None:
    floor = under_floor(floor_us=SHORTEST_HOST_GAP_US)
    assert on_devices(sync_point, floor).status == "pass"
    assert on_devices(sync_point, under_floor(floor_us=50.1)).status == "inconclusive"


@pytest.mark.parametrize(("us", "length"), [(1000.0, "1 ms"), (999.0, "999 us")])
def test_a_floor_is_told_in_the_unit_that_fits(us: float, length: str) -> None:
    assert f"in gaps under {length}," in on_devices(sync_point, under_floor(floor_us=us)).advice


def test_input_is_what_limits_a_device_from_a_fifth_of_its_time_on() -> None:
    of = of_device(input_gap, "input")
    assert "input is what limits it" in of(input_gap.HIGHLY.value).advice
    assert "input costs it time" in of(SHORT_OF_IT * input_gap.HIGHLY.value).advice


@pytest.mark.parametrize(
    ("gb_per_s", "count", "words"),
    [
        (25.0, 10, "about what PCIe gives"),
        (24.9, 1, "Copies from pinned memory"),
        (24.9, 10, "Copies from pinned memory"),
        (24.9, 11, "pack features"),
    ],
)
def test_a_copy_s_rate_is_judged_by_its_size(gb_per_s: float, count: int, words: str) -> None:
    """Of 10 MiB in all, on a bus of 50 GB/s."""
    device = gpu(copies=[copies(gb_per_s=gb_per_s, bytes=10 * 2**20, count=count)])
    assert words in on_devices(exposed_host_copy, device).advice
