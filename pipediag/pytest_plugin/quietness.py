"""Whether other programs leave the CPUs to a measurement."""

from __future__ import annotations

import time

import pytest

from pipediag.doctor.cpu import BUSY_SHARE
from pipediag.sensors.other_programs import others_percent, read_cpus

MOST_PERCENT = 100.0 * BUSY_SHARE
"""Of the CPUs: from there on `pipediag doctor` warns, too."""

LOOK_S = 0.5
"""Fifty ticks of each CPU's counters."""


def most_percent(marker: pytest.Mark | None) -> float:
    """What the marker `pipediag_quiet` allows others to use of the CPUs."""
    return MOST_PERCENT if marker is None else _allowed(*marker.args, **marker.kwargs)


def why_not_now(most: float) -> str | None:
    """Look for a moment; a sentence where others use more of the CPUs."""
    before = read_cpus()
    time.sleep(LOOK_S)
    percent = others_percent(before, read_cpus())
    if percent is None or percent <= most:
        return None
    return (
        f"{busy(percent, most)} Nothing was measured. Run the test when they have ended, or apart "
        "from other tests."
    )


def busy(percent: float, most: float) -> str:
    """What others used, as a sentence."""
    return (
        f"Other programs used {percent:.0f} % of the CPUs; more than {most:g} % spoils a "
        "measurement."
    )


def _allowed(max_percent: float = MOST_PERCENT) -> float:
    """The marker's arguments, as pytest would refuse those of a function."""
    return float(max_percent)
