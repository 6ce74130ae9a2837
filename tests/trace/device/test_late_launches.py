"""What a gap is after the call that ended it: the call came late, or its work had been waiting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trace.cuda import CudaProfile, causes_us


@pytest.mark.parametrize(
    ("call", "causes"),
    [
        # It had returned by the time the device went idle: the work lay there.
        ((80, 90), {"queued": 100}),
        ((90, 100), {"queued": 100}),
        # It began while the device was busy and returned too late: 10 of the call, 90 until the
        # kernel began.
        ((90, 110), {"launch": 100}),
        # It began too late, too: 20 in which the host was elsewhere.
        ((120, 130), {"python": 20, "launch": 80}),
    ],
)
def test_a_call_is_late_by_its_end(
    tmp_path: Path, call: tuple[int, int], causes: dict[str, int]
) -> None:
    profile = CudaProfile()
    profile.steps(0, 300)
    profile.kernel((0, 100), launch=(0, 5))
    profile.kernel((200, 210), launch=call)
    [device] = profile.devices(tmp_path)
    assert causes_us(device) == causes


def test_a_call_that_outlasts_the_gap_takes_no_more_than_the_gap(tmp_path: Path) -> None:
    profile = CudaProfile()
    profile.steps(0, 300)
    profile.kernel((0, 100), launch=(0, 5))
    profile.kernel((200, 210), launch=(150, 260))
    [device] = profile.devices(tmp_path)
    assert causes_us(device) == {"python": 50, "launch": 50}
