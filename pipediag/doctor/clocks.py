"""Clocks: whether short steps can be timed here, and how late a sleeping thread wakes."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from pipediag.doctor.check import Check

ROOT = Path("/")

COARSE_NS = 10_000
"""Half a per cent of a step of 2 ms."""

LATE_MS = 1.0
SLEEP_S = 0.001
SLEEPS = 50
READS = 2000

_SLOW_SOURCES = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")


def resolution(clock: Callable[[], int] = time.monotonic_ns, root: Path = ROOT) -> Check:
    """How finely the clock of the measurements ticks."""
    step_ns = _smallest_step(clock)
    source = _clock_source(root)
    found = f"Two readings differ by {step_ns / 1000:.2f} us at least{source and f' ({source})'}."
    if step_ns <= COARSE_NS and source not in _SLOW_SOURCES:
        return Check("Clock", "ok", found)
    return Check(
        "Clock",
        "warn",
        found,
        "Steps of a few milliseconds are timed coarsely, and each reading of the clock costs.",
        "Use the clock source tsc, or the one that the hypervisor offers, if there is a choice.",
    )


def wake_up(
    clock: Callable[[], int] = time.monotonic_ns, sleep: Callable[[float], None] = time.sleep
) -> Check:
    """How late a thread wakes that slept for a millisecond."""
    late_ms = sorted(_lateness_ms(clock, sleep) for _ in range(SLEEPS))
    p95 = late_ms[int(0.95 * SLEEPS)]
    found = f"A thread that sleeps for 1 ms wakes {p95:.2f} ms late, or less, 19 times in 20."
    if p95 < LATE_MS:
        return Check("Wake-up", "ok", found)
    return Check(
        "Wake-up",
        "warn",
        found,
        "The CPUs are busy or slow to wake: stack samples and hand-overs of work are late.",
        "Measure when the machine is quieter.",
    )


def _smallest_step(clock: Callable[[], int]) -> int:
    times = [clock() for _ in range(READS)]
    steps = [after - before for before, after in pairwise(times)]
    return min((step for step in steps if step > 0), default=COARSE_NS * READS)


def _lateness_ms(clock: Callable[[], int], sleep: Callable[[float], None]) -> float:
    before = clock()
    sleep(SLEEP_S)
    return (clock() - before) / 1e6 - 1000 * SLEEP_S


def _clock_source(root: Path) -> str:
    path = root / "sys/devices/system/clocksource/clocksource0/current_clocksource"
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
