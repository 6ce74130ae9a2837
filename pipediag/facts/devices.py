"""The devices of a profile: which count, what they waited for, and the clock that they share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipediag.session.devices import DeviceActivity, DeviceGap
from pipediag.session.loops import StepRow
from pipediag.session.model import Session
from pipediag.session.trials import TrialBlock, TrialRun
from pipediag.vocabulary import GapCause, Scalar

NO_DEVICE = "The profile shows no activity on any device."


def accelerators(devices: Sequence[DeviceActivity]) -> list[DeviceActivity]:
    """Return the GPUs that ran anything."""
    return [device for device in devices if device.kind.lower() == "gpu" and device.span_ms > 0]


def worst(
    devices: Sequence[DeviceActivity], percent: Callable[[DeviceActivity], float]
) -> DeviceActivity | None:
    """Return the device with the largest percentage: one finding speaks for all of them."""
    return max(devices, key=percent, default=None)


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
    """Return what the launching thread did longest in the time lost to this cause, and its ms.

    None where no recorded gap says it.
    """
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


_TOLERANCE_MS = 5.0
"""Tolerance of a marker against its step: the end of one and the start of the next lie between."""
_FEWEST_AGREE = 0.9
"""Own choice, of the gaps that have a step: else the two do not count the same steps."""


@dataclass(frozen=True)
class ProfileClock:
    """Converts times and step numbers of a profile to those of the session."""

    rows: tuple[StepRow, ...]
    """The profile's window: the profile numbers its steps by their place in it."""

    def run_ms(self, profile_ms: float) -> float:
        """Return the session's time of one that counts from the profile's first step."""
        return round(self.rows[0].start_ms + profile_ms, 6)  # both are whole nanoseconds

    def step_index(self, step: int | None) -> int | None:
        if step is None or not 0 <= step < len(self.rows):
            return None
        return self.rows[step].index

    def agrees(self, gap: DeviceGap) -> bool:
        """Return True if a gap lies in the step that it says it began in."""
        if gap.step is None or not 0 <= gap.step < len(self.rows):
            return False
        row, at_ms = self.rows[gap.step], self.run_ms(gap.start_ms)
        early = at_ms - row.start_ms
        return -_TOLERANCE_MS <= early <= row.duration_ms + _TOLERANCE_MS


def profile_clock(session: Session) -> ProfileClock | None:
    """Return the clock; None without profiled steps, or where gaps are not in the steps named."""
    rows = tuple(row for row in session.step_rows if row.window == "profile")
    gaps = [gap for device in session.devices for gap in device.gaps if gap.step is not None]
    if not rows or not gaps:
        return None
    clock = ProfileClock(rows)
    agreeing = sum(map(clock.agrees, gaps))
    return clock if agreeing >= _FEWEST_AGREE * len(gaps) else None


def block_start_ms(run: TrialRun, block: TrialBlock) -> float | None:
    """Return the start of a block's counted steps; None where it was not recorded."""
    if run.start_ms is None or block.since_began_ms is None:
        return None
    return run.start_ms + block.since_began_ms
