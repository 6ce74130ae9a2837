"""The devices of a profile: which count, and what they waited for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pipediag.session.devices import DeviceActivity, DeviceGap
from pipediag.vocabulary import GapCause, Scalar

NO_DEVICE = "The profile shows no activity on any device."


def accelerators(devices: Sequence[DeviceActivity]) -> list[DeviceActivity]:
    """Return the GPUs that ran anything."""
    return [device for device in devices if device.kind.lower() == "gpu" and device.span_ms > 0]


def full_name(device: DeviceActivity) -> str:
    """Return the name of the device, with its host's where the profile is of several."""
    return f"{device.host} {device.name}" if device.host else device.name


def percent_of_span(device: DeviceActivity, ms: float | None) -> float:
    """Return milliseconds as percent of the device's span; unknown ones count as none."""
    return 100.0 * (ms or 0.0) / device.span_ms


def cause_percent(device: DeviceActivity, cause: GapCause) -> float:
    """Return the percent of the device's span in which it was idle for this cause."""
    return percent_of_span(device, device.causes_ms.get(cause))


def held_up(device: DeviceActivity, cause: GapCause) -> list[tuple[DeviceGap, float]]:
    """Return the recorded gaps that this cause has a part in, with the milliseconds of that."""
    parts = [
        (gap, (gap.causes_ms or {gap.cause: gap.duration_ms}).get(cause, 0.0))
        for gap in device.gaps
    ]
    return [(gap, ms) for gap, ms in parts if ms > 0]


def longest_doing(device: DeviceActivity, cause: GapCause) -> tuple[str, float] | None:
    """Return what the launching thread did longest in that lost time, and its ms, if a gap says."""
    spent: dict[str, float] = defaultdict(float)
    for gap, ms in held_up(device, cause):
        if gap.doing:
            spent[gap.doing] += ms
    return max(spent.items(), key=lambda item: item[1], default=None)


def idle_evidence(device: DeviceActivity, cause: GapCause) -> dict[str, Scalar]:
    """Return the evidence that every rule on a cause of idle time has."""
    parts = [ms for _, ms in held_up(device, cause)]
    return {
        "device": full_name(device),
        f"{cause}_idle_percent_of_span": cause_percent(device, cause),
        f"{cause}_idle_ms": device.causes_ms.get(cause, 0.0),
        f"longest_{cause}_gap_ms": max(parts, default=None),
        "busy_percent": device.busy_percent,
    }
