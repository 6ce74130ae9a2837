"""Devices in words: how much they computed, why they were idle, and their longest gaps."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.names import in_sentence
from pipediag.reporters.words import labels
from pipediag.reporters.words.quantities import NO_BREAK, counted, duration, number, percent
from pipediag.session.devices import DeviceActivity, DeviceGap

GROUPED_GAPS = 200
"""Gaps that are grouped; more groups would have no place."""
_LEAST_PERCENT = 0.05
"""Less would be shown as nothing."""


@dataclass(frozen=True)
class IdlePart:
    """Idle time of one cause, or of gaps too short to be given one."""

    label: str
    meaning: str
    ms: float
    percent_of_idle: float
    percent_of_span: float


def idle_parts(device: DeviceActivity) -> list[IdlePart]:
    """Return the parts of the idle time: the causes, the largest first, then the short gaps."""
    causes = sorted(device.causes_ms.items(), key=lambda item: -item[1])
    parts = [(labels.GAP_CAUSE[cause], labels.GAP_CAUSE_MEANING[cause], ms) for cause, ms in causes]
    floor = f"{number(device.gap_floor_us)}{NO_BREAK}µs"
    parts.append((f"Gaps under {floor}", "too short to look for a cause", device.noise_ms))
    return [
        IdlePart(label, meaning, ms, _percent(ms, device.idle_ms), _percent(ms, device.span_ms))
        for label, meaning, ms in parts
        if ms > 0
    ]


def main_part(device: DeviceActivity) -> str | None:
    """Return the label of the largest part of the idle time; None where there is none."""
    part = max(idle_parts(device), key=lambda part: part.ms, default=None)
    return None if part is None else part.label


def summary(device: DeviceActivity, name: str) -> tuple[str, str]:
    """Return how much the device computed, and the rest of the sentence, without its full stop.

    A copy without a kernel beside it is no computing.
    """
    main = main_part(device)
    mostly = f"mostly {in_sentence(main)}" if main else ""
    whole = f" of {duration(device.span_ms)}"
    if device.kind == "cpu":
        lead = f"No accelerator. The model's operations ran {percent(compute_percent(device))}"
        return lead, whole + (f"; {mostly}" if mostly else "")
    beside = (
        (_percent(device.exposed_copy_ms, device.span_ms), "only copying"),
        (_percent(device.exposed_collective_ms, device.span_ms), "only collectives"),
        (device.idle_percent, "idle"),
    )
    others = [f"{percent(share)} {label}" for share, label in beside if share >= _LEAST_PERCENT]
    rest = ", ".join(filter(None, [*others, mostly]))
    does = "is busy" if device.compute_ms is None else "computes"
    lead = f"{name} {does} {percent(compute_percent(device))}"
    return lead, whole + (f": {rest}" if rest else "")


def compute_percent(device: DeviceActivity) -> float:
    """Return the share of the window in which kernels other than collectives ran.

    It is the busy time where that is not known, as on a CPU that stands for the device.
    """
    if device.compute_ms is None:
        return device.busy_percent
    return _percent(device.compute_ms, device.span_ms)


def gap_counts(device: DeviceActivity) -> str:
    """Return how many gaps the idle time consists of; those under the floor are counted apart."""
    floor = f"{number(device.gap_floor_us)}{NO_BREAK}µs"
    longest = f", the longest {duration(device.longest_gap_ms)}" if device.gap_count else ""
    short = f", and {counted(device.noise_count, 'shorter one')}" if device.noise_count else ""
    return f" in {counted(device.gap_count, 'gap')} of {floor} or more{longest}{short}"


def shown_iterator(iterator: str) -> str:
    """Return TensorFlow's path of an iterator without its root, which is the same for all."""
    return iterator.removeprefix("Root::")


def gap_groups(device: DeviceActivity) -> list[list[DeviceGap]]:
    """Return the longest gaps by cause and place, the groups that took most time first."""
    found: dict[tuple[str, str], list[DeviceGap]] = {}
    for gap in sorted(device.gaps, key=lambda gap: -gap.duration_ms)[:GROUPED_GAPS]:
        found.setdefault((gap.cause, gap_place(gap)), []).append(gap)
    return sorted(found.values(), key=lambda gaps: -sum(one.duration_ms for one in gaps))


def gap_place(gap: DeviceGap) -> str:
    """Return source line, iterator or event, as far as they are known."""
    known = []
    if gap.file is not None:
        known.append(gap.file if gap.line is None else f"{gap.file}:{gap.line}")
    if gap.iterator is not None:
        known.append(shown_iterator(gap.iterator))
    elif gap.doing is not None:
        known.append(f"in {gap.doing}")
    return ", ".join(known)


def _percent(part: float | None, whole: float) -> float:
    return 100.0 * part / whole if part and whole else 0.0
