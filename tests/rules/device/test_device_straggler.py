from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.device import device_straggler
from pipediag.session.devices import DeviceActivity
from pipediag.vocabulary import GapCause
from tests.rules.devices import cpu, gpu, on_devices, session_on
from tests.rules.sessions import only


def member(
    index: int, waits: float, *, own: dict[GapCause, float] | None = None, **overrides: Any
) -> DeviceActivity:
    """A device that waits in gaps for `waits` ms, and is held up by itself as `own` says."""
    causes: dict[GapCause, float] = {"collective": waits, **(own or {})}
    values = {"name": f"GPU:{index}", "collective_ms": 5.0, "exposed_collective_ms": 0.0}
    return gpu(causes, **{**values, **overrides})


def test_one_of_four_computes_longer() -> None:
    devices = [member(0, 30.0), member(1, 31.0), member(2, 29.0), member(3, 0.0)]
    finding = on_devices(device_straggler, *devices)
    assert finding.status == "fail"
    assert finding.evidence["device"] == "GPU:3"
    assert finding.evidence["others_wait_percent_of_span"] == 30.0
    # Own times 70, 69, 71, 100: median 70.5, deviations 0.5, 1.5, 0.5, 29.5 with median 1.
    assert finding.evidence["modified_z_score"] == pytest.approx(0.6745 * 29.5, abs=0.01)
    assert "nvidia-smi" in finding.advice
    # 100 ms over the others' median of 70 ms.
    assert finding.speedup_at_most == 1.429


def test_waiting_shows_within_the_collective_too() -> None:
    spinning = [member(i, 0.0, collective_ms=30.0, exposed_collective_ms=30.0 + i) for i in (0, 1)]
    finding = on_devices(device_straggler, *spinning, member(2, 1.0, exposed_collective_ms=1.0))
    assert (finding.status, finding.evidence["device"]) == ("fail", "GPU:2")


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"input": 40.0}, "its own input"),
        ({"copy": 40.0}, "PCIe link"),
        ({"python": 40.0}, "Its host keeps it waiting"),
    ],
)
def test_says_what_the_slow_one_does_longer(own: dict[GapCause, float], words: str) -> None:
    devices = [member(0, 40.0, host="a"), member(0, 0.0, own=own, host="b")]
    finding = on_devices(device_straggler, *devices)
    assert finding.evidence["device"] == "b GPU:0"
    assert words in finding.advice


def test_says_how_late_the_slow_ones_host_begins_its_steps() -> None:
    devices = [member(0, 40.0, host="a", host_late_ms=0.0)]
    slow = member(0, 0.0, own={"python": 40.0}, host="b", host_late_ms=3.5)
    finding = on_devices(device_straggler, *devices, slow)
    assert finding.evidence["host_begins_steps_late_ms"] == 3.5


def test_two_devices_are_told_apart_by_their_ratio() -> None:
    finding = on_devices(device_straggler, member(0, 30.0), member(1, 5.0))
    # 95 ms of its own over 70 ms.
    assert (finding.status, finding.evidence["modified_z_score"]) == ("fail", None)
    assert finding.title == "GPU:0 waits for GPU:1"
    assert finding.advice.startswith("GPU:0 waits 30 % of the time for GPU:1.")
    near = on_devices(device_straggler, member(0, 30.0), member(1, 18.0))
    assert near.status == "informative"


def test_devices_that_are_otherwise_alike_are_told_apart_by_their_ratio() -> None:
    finding = on_devices(device_straggler, member(0, 40.0), member(1, 40.0), member(2, 0.0))
    assert (finding.status, finding.evidence["modified_z_score"]) == ("fail", None)


def test_waiting_alike_is_communication() -> None:
    devices = [member(index, wait) for index, wait in enumerate((30.0, 20.0, 25.0, 18.0))]
    finding = on_devices(device_straggler, *devices)
    assert finding.status == "informative"
    assert "communication" in finding.advice
    assert finding.title == "Devices wait for each other"


def test_short_waits_pass() -> None:
    finding = on_devices(device_straggler, member(0, 9.0), member(1, 9.0), member(2, 0.0))
    assert finding.status == "pass"


def test_without_collectives_the_devices_take_turns() -> None:
    devices = [member(0, 60.0, collective_ms=None), member(1, 0.0, collective_ms=None)]
    finding = on_devices(device_straggler, *devices)
    assert finding.status == "informative"
    assert "MirroredStrategy" in finding.advice


def test_one_device_or_cpus_have_nobody_to_wait_for() -> None:
    assert on_devices(device_straggler, gpu()).status == "not-applicable"
    assert on_devices(device_straggler, cpu({"collective": 50.0}), cpu({})).status == (
        "not-applicable"
    )


def test_a_session_says_the_same() -> None:
    assert only(device_straggler, session_on(member(0, 30.0), member(1, 5.0))).status == "fail"


def test_others_that_only_wait_leave_no_prediction() -> None:
    finding = on_devices(device_straggler, member(0, 100.0), member(1, 0.0))
    assert finding.speedup_at_most is None


def test_one_among_many_that_differ_does_not_stand_out() -> None:
    """It takes 1.4 times what the others do, and each of them another time."""
    devices = [member(i, waits) for i, waits in enumerate((50.0, 30.0, 10.0, 0.0))]
    finding = on_devices(device_straggler, *devices)
    assert finding.status == "informative"
    assert "no single device" in finding.advice


def test_copies_count_whether_they_leave_a_gap_or_not() -> None:
    slow = member(1, 0.0, own={"copy": 15.0, "input": 20.0}, exposed_copy_ms=15.0)
    assert "PCIe link" in on_devices(device_straggler, member(0, 40.0), slow).advice
