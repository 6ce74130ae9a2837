"""A device that is idle, by what the host did meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.device_idle import (
    INPUT_GAP,
    LAUNCH_BOUND,
    PYTHON_GAP,
    SYNC_POINT,
)
from pipediag.rules.rule import Rule
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Insert, SetModel
from pipediag.session.loops import Perturbation
from pipediag.session.model import Session
from tests.factories import (
    make_compute_bound_session,
    make_keras,
    make_loop,
    make_session,
)
from tests.rules.devices import cpu, gap, gpu, launches, on_devices, session_on, under_floor
from tests.rules.sessions import cases, changes, only, straddles

SLOWED = {"perturbation": Perturbation(baseline_step_ms=10.0, profiled_step_ms=20.0, ratio=2.0)}
SHARED, XLA = (SetModel({"steps_per_execution": 16}),), (SetModel({"jit_compile": True}),)


def late(idle: float = 40.0, **overrides: Any) -> DeviceActivity:
    """A GPU that waits for launches."""
    return gpu({"launch": idle}, launches=launches(**overrides))


STEPS = [gap("python", 5.0, step=step, doing="$callbacks.py:12 log") for step in range(8)]
LOGGING = gpu({"python": 40.0}, gaps=STEPS)
PAUSE = gap("python", 25.0, step=7, doing="$saving.py:80 save")
SHORT = {"shorter_than_launch_percent": 80.0}


@cases(
    {
        "input": (INPUT_GAP, [gpu({"input": 30.0})], "fail"),
        "input of a CPU": (INPUT_GAP, [cpu({"input": 30.0})], "fail"),
        "a GPU before a CPU": (INPUT_GAP, [cpu({"input": 80.0}), gpu({"input": 2.0})], "pass"),
        "no device for input": (INPUT_GAP, [], "pass"),
        "short kernels": (LAUNCH_BOUND, [late(**SHORT)], "fail"),
        "short kernels, kept busy": (LAUNCH_BOUND, [late(4.0, **SHORT)], "informative"),
        "short kernels, launched ahead": (
            LAUNCH_BOUND,
            [late(median_delay_us=400.0, **SHORT)],
            "fail",
        ),
        "short kernels in short gaps": (
            LAUNCH_BOUND,
            [under_floor(launches=launches(**SHORT))],
            "inconclusive",
        ),
        "launches": (LAUNCH_BOUND, [late()], "fail"),
        "launched ahead": (LAUNCH_BOUND, [late(median_delay_us=400.0)], "informative"),
        "launches behind input": (
            LAUNCH_BOUND,
            [gpu({"launch": 20.0, "input": 30.0}, launches=launches())],
            "informative",
        ),
        "launches of a CPU": (LAUNCH_BOUND, [cpu({"launch": 60.0})], "pass"),
        "launches in short gaps": (
            LAUNCH_BOUND,
            [under_floor(launches=launches())],
            "inconclusive",
        ),
        "read-backs": (SYNC_POINT, [gpu({"sync": 20.0})], "fail"),
        "read-backs behind input": (
            SYNC_POINT,
            [gpu({"sync": 20.0, "input": 20.0})],
            "informative",
        ),
        "read-backs of a CPU": (SYNC_POINT, [cpu({"sync": 20.0})], "pass"),
        "Python": (PYTHON_GAP, [LOGGING], "fail"),
        "Python before a CPU": (
            PYTHON_GAP,
            [cpu({"python": 40.0}).model_copy(update={"gaps": STEPS})],
            "fail",
        ),
        "one pause": (PYTHON_GAP, [gpu({"python": 40.0}, gaps=[*STEPS[:3], PAUSE])], "informative"),
    },
    "rule, devices, status",
)
def test_a_profile_s_devices(rule: Rule, devices: list[DeviceActivity], status: str) -> None:
    assert on_devices(rule, *devices).status == status


MIXED = gap("input", 20.0, iterator="Root::Map", causes_ms={"input": 6.0, "python": 5.0})


@pytest.mark.parametrize(
    ("rule", "device", "at_most"),
    [
        (INPUT_GAP, gpu({"input": 50.0}), 2.0),
        # A device that does nothing else predicts nothing.
        (INPUT_GAP, gpu({"input": 100.0}), None),
        (LAUNCH_BOUND, late(), 1.667),
        (SYNC_POINT, gpu({"sync": 20.0}), 1.25),
        (PYTHON_GAP, LOGGING, 1.667),
    ],
)
def test_the_bound_is_the_span_without_that_idle_time(
    rule: Rule, device: DeviceActivity, at_most: float | None
) -> None:
    assert on_devices(rule, device).speedup_at_most == at_most


# In a session


WAITS = gpu({"input": 30.0}, gaps=[gap("input", 30.0, op_id="map_0")])
AHEAD = (Insert("batch_0", "prefetch_to_device", {"device": "/gpu:0"}),)


@pytest.mark.parametrize(
    ("session", "status", "edit"),
    [
        (make_session(devices=[WAITS]), "fail", AHEAD),
        (make_session(devices=[WAITS], breakdown=None), "fail", AHEAD),
        # Steps that do not wait without the profiler are believed.
        (session_on(WAITS), "informative", None),
        (make_session(devices=[WAITS], **straddles()), "informative", AHEAD),
        (make_compute_bound_session(devices=[]), "inconclusive", None),
        (session_on(cpu({"input": 80.0})), "not-applicable", None),
    ],
)
def test_a_session_weighs_waits_for_input_by_its_steps(
    session: Session, status: str, edit: object
) -> None:
    finding = only(INPUT_GAP, session)
    assert (finding.status, changes(finding)) == (status, edit)


def fit(**keras: Any) -> dict[str, Any]:
    return {"loops": [make_loop(keras=make_keras(**keras))]}


OWN = {"loops": [make_loop(kind="eager", keras=None)]}


@cases(
    {
        "launches": (LAUNCH_BOUND, session_on(late()), "fail", XLA),
        "launches under XLA": (
            LAUNCH_BOUND,
            session_on(late(), **fit(jit_compile=True)),
            "fail",
            SHARED,
        ),
        "launches of an own loop": (LAUNCH_BOUND, session_on(late(), **OWN), "fail", None),
        "launched ahead": (
            LAUNCH_BOUND,
            session_on(late(median_delay_us=400.0)),
            "informative",
            XLA,
        ),
        "in doubt": (LAUNCH_BOUND, session_on(late(), **SLOWED), "informative", XLA),
        "read-backs in doubt": (
            SYNC_POINT,
            session_on(gpu({"sync": 20.0}), **SLOWED),
            "inconclusive",
            None,
        ),
        "Python": (PYTHON_GAP, session_on(LOGGING), "fail", SHARED),
        "Python in doubt": (PYTHON_GAP, session_on(LOGGING, **SLOWED), "informative", SHARED),
        "unperturbed": (LAUNCH_BOUND, session_on(late(), perturbation=None), "fail", XLA),
    },
    "rule, session, status, edit",
)
def test_a_session_tries_the_model_in_another_way(
    rule: Rule, session: Session, status: str, edit: object
) -> None:
    finding = only(rule, session)
    assert (finding.status, changes(finding)) == (status, edit)
