"""Why a device was idle, as the parts that its idle time divides into."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.reporters.words import labels
from pipediag.reporters.words.quantities import NO_BREAK, number
from pipediag.session.devices import DeviceActivity, DeviceGap


@dataclass(frozen=True)
class IdlePart:
    """Idle time of one cause, or of gaps too short to be given one."""

    label: str
    meaning: str
    ms: float
    percent_of_idle: float
    percent_of_span: float


def idle_parts(device: DeviceActivity) -> list[IdlePart]:
    """The causes, those that took most time first, then the short gaps.

    They add up to the idle time; without any there are none.
    """
    causes = sorted(device.causes_ms.items(), key=lambda item: -item[1])
    parts = [(labels.gap_cause(cause), labels.gap_cause_meaning(cause), ms) for cause, ms in causes]
    floor = f"{number(device.gap_floor_us)}{NO_BREAK}µs"
    parts.append((f"Gaps under {floor}", "too short to look for a cause", device.noise_ms))
    return [
        IdlePart(
            label=label,
            meaning=meaning,
            ms=ms,
            percent_of_idle=_percent(ms, device.idle_ms),
            percent_of_span=_percent(ms, device.span_ms),
        )
        for label, meaning, ms in parts
        if ms > 0
    ]


def main_part(device: DeviceActivity) -> str | None:
    """What most of the idle time is; None where there is none."""
    part = max(idle_parts(device), key=lambda part: part.ms, default=None)
    return None if part is None else part.label


def longest_gaps(device: DeviceActivity, most: int) -> list[DeviceGap]:
    """The longest first."""
    return sorted(device.gaps, key=lambda gap: -gap.duration_ms)[:most]


def shown_iterator(iterator: str) -> str:
    """TensorFlow's path of an iterator without its root, which is the same for all."""
    return iterator.removeprefix("Root::")


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else 0.0
