from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from pipediag.doctor import clocks
from tests.fake_proc import write

SOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"


def ticking(step_ns: int, reads_per_tick: int = 1) -> Callable[[], int]:
    reads = count()
    return lambda: next(reads) // reads_per_tick * step_ns


@pytest.mark.parametrize(
    ("step_ns", "source", "state"),
    [(40, "tsc", "ok"), (15_600_000, "tsc", "warn"), (40, "hpet", "warn")],
)
def test_resolution(tmp_path: Path, step_ns: int, source: str, state: str) -> None:
    write(tmp_path, SOURCE, f"{source}\n")
    check = clocks.resolution(ticking(step_ns, reads_per_tick=3), tmp_path)
    assert check.state == state
    assert source in check.found


def test_a_clock_that_stands_still_is_coarse(tmp_path: Path) -> None:
    assert clocks.resolution(lambda: 5, tmp_path).state == "warn"


@pytest.mark.parametrize(("wakes_after_ms", "state"), [(1.1, "ok"), (9.0, "warn")])
def test_wake_up(wakes_after_ms: float, state: str) -> None:
    now = [0]

    def sleep(seconds: float) -> None:
        now[0] += int(wakes_after_ms * 1e6)

    check = clocks.wake_up(lambda: now[0], sleep)
    assert check.state == state
    assert f"{wakes_after_ms - 1:.2f} ms late" in check.found
