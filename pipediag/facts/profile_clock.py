"""Where the profile's own time and step numbers lie among those of the session."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.session.devices import DeviceGap
from pipediag.session.model import Session
from pipediag.session.steps import StepRow

_TOLERANCE_MS = 5.0
"""Of a marker against the step that it marks: what ends one and begins the next runs in between."""
_FEWEST_AGREE = 0.9
"""Own choice, of the gaps that have a step: else the two do not count the same steps."""


@dataclass(frozen=True)
class ProfileClock:
    """Times and steps of a profile, as windows, steps and host samples have them."""

    rows: tuple[StepRow, ...]
    """Of the profile's window: the profile numbers its steps by their place among them."""

    def run_ms(self, profile_ms: float) -> float:
        """A time of the profile, which counts from its first step, by the session's clock."""
        return round(self.rows[0].start_ms + profile_ms, 6)  # both are whole nanoseconds

    def step_index(self, step: int | None) -> int | None:
        """The `index` in `steps.csv` of a step of the profile."""
        if step is None or not 0 <= step < len(self.rows):
            return None
        return self.rows[step].index

    def agrees(self, gap: DeviceGap) -> bool:
        """Whether a gap lies in the step that it says it began in."""
        if gap.step is None or not 0 <= gap.step < len(self.rows):
            return False
        row, at_ms = self.rows[gap.step], self.run_ms(gap.start_ms)
        early = at_ms - row.start_ms
        return -_TOLERANCE_MS <= early <= row.duration_ms + _TOLERANCE_MS


def profile_clock(session: Session) -> ProfileClock | None:
    """None without a profiled step, and where gaps do not lie in the steps that they name."""
    rows = tuple(row for row in session.step_rows if row.window == "profile")
    gaps = [gap for device in session.devices for gap in device.gaps if gap.step is not None]
    if not rows or not gaps:
        return None
    clock = ProfileClock(rows)
    agreeing = sum(map(clock.agrees, gaps))
    return clock if agreeing >= _FEWEST_AGREE * len(gaps) else None
