"""A limit on the time in which a device was idle."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import stdev

from pipediag.facts.devices import accelerators_or_cpus, full_name, percent_of_span, worst
from pipediag.gate.config import GateConfig
from pipediag.gate.limits import Limit, Measured, Place, judged, of_runs, student
from pipediag.gate.result import Check
from pipediag.session.devices import DeviceActivity
from pipediag.session.model import Session

FEWEST_STEPS = 4
"""Of the profile: the spread of fewer says next to nothing. Own choice."""

_NARROWER = "More runs (--repeats) make the interval narrower."


def idle_limit_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    """One check where the configuration limits it, of the device that is idle most.

    Without a GPU, TensorFlow's executor on the CPUs stands for a device.
    """
    most = config.max_device_idle_percent
    if most is None:
        return []
    device = _idlest(runs[0])
    name = "" if device is None else f" ({full_name(device)})"
    limit = Limit("max-device-idle-percent", f"Device idle{name}", most)
    found = [_of(run, alone=len(runs) == 1) for run in runs]
    return [judged(limit, of_runs(found), _place(device), narrower=_NARROWER)]


def _idlest(session: Session) -> DeviceActivity | None:
    return worst(accelerators_or_cpus(session.devices), lambda one: one.idle_percent)


def _of(session: Session, *, alone: bool) -> Measured | str:
    """Idle time with what its steps leave open, and what the profiler may have put in."""
    device = _idlest(session)
    if device is None:
        return "no device was seen at work in a profile."
    reach = _reach(device)
    if reach is None and alone:
        return (
            f"the profile has not {FEWEST_STEPS} steps with their gaps, so that its spread is not "
            "known. Make several runs (--repeats 3)."
        )
    ends = (device.idle_percent, _without_profiler(session, device))
    interval = min(ends) - (reach or 0.0), max(ends) + (reach or 0.0)
    return Measured(device.idle_percent, interval, of="the profile")


def _reach(device: DeviceActivity) -> float | None:
    """Half of a 95 % interval from the spread of idle time over the steps, points.

    None where the recorded gaps lie in too few steps, or make less than half of the idle time.
    """
    if not device.gaps:
        # Nothing but gaps under the floor.
        return 0.0
    by_step: defaultdict[int, float] = defaultdict(float)
    for gap in device.gaps:
        if gap.step is not None:
            by_step[gap.step] += gap.duration_ms
    if len(by_step) < FEWEST_STEPS or 2.0 * sum(by_step.values()) < device.idle_ms:
        return None
    idle = list(by_step.values())
    # Of the sum over all steps, of which the share is one.
    error = stdev(idle) * math.sqrt(len(idle))
    return student(len(idle)) * percent_of_span(device, error)


def _without_profiler(session: Session, device: DeviceActivity) -> float:
    """Idle percent if all that the profiler adds to a step were idle time of the device."""
    ratio = session.perturbation.ratio if session.perturbation is not None else None
    if ratio is None or not math.isfinite(ratio) or ratio <= 0.0:
        return device.idle_percent
    return 100.0 - device.busy_percent * ratio


def _place(device: DeviceActivity | None) -> Place:
    """Of what held the device up longest."""
    gaps = [] if device is None else [gap for gap in device.gaps if gap.file is not None]
    longest = max(gaps, key=lambda gap: gap.duration_ms, default=None)
    return (None, None) if longest is None else (longest.file, longest.line)
