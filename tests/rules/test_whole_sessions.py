"""All rules together on whole sessions: none ends in an error of its own."""

from __future__ import annotations

from typing import get_args

import pytest

from pipediag.rules.registry import run_device_rules, run_rules
from pipediag.session.devices import DeviceActivity
from pipediag.session.model import Session
from pipediag.vocabulary import Framework
from tests.factories import make_compute_bound_session, make_session
from tests.records import make_environment
from tests.rules.devices import copies, gap, gpu, launches
from tests.rules.sessions import keeps_up, straddles

BUSY_HOST = gpu(
    {"launch": 18.0, "python": 17.0, "sync": 10.0, "copy": 4.0},
    gaps=[gap("python", 2.0, step=step, doing="$train.py:9 log") for step in range(4)],
    launches=launches(shorter_than_launch_percent=80.0),
    copies=[copies(exposed_ms=8.0, gb_per_s=2.0, bytes=100_000_000)],
    matmul_ms=40.0,
    tensor_core_ms=0.0,
)
HUNGRY = gpu({"input": 50.0})
TAKING_TURNS = [gpu({"collective": wait}, name=f"GPU:{wait:.0f}") for wait in (60.0, 0.0)]


@pytest.mark.parametrize(
    "session",
    [
        make_session(),
        make_compute_bound_session(),
        make_session(**keeps_up()),
        make_session(**straddles()),
        make_session(environment=make_environment(gpu_installed=["NVIDIA H200"])),
        make_session(devices=[HUNGRY]),
        make_compute_bound_session(devices=[BUSY_HOST]),
        make_compute_bound_session(devices=TAKING_TURNS),
        make_session(ceiling=None, differential=None, host=None),
    ],
    ids=[
        *("input-bound", "compute-bound", "kept up", "straddling", "no GPU", "hungry GPU"),
        *("held up by the host", "taking turns", "little known"),
    ],
)
def test_a_session(session: Session) -> None:
    for finding in run_rules(session):
        assert finding.status != "error", finding.title


@pytest.mark.parametrize("framework", get_args(Framework))
@pytest.mark.parametrize(
    "devices", [[BUSY_HOST], [HUNGRY], TAKING_TURNS], ids=["held up", "hungry", "taking turns"]
)
def test_a_profile(framework: Framework, devices: list[DeviceActivity]) -> None:
    for finding in run_device_rules(devices, framework):
        assert finding.status != "error", finding.title
