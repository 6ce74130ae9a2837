"""One device in one sentence: how much of the time it computed, and what the rest was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipediag.reporters.words.idle_time import main_part
from pipediag.reporters.words.labels import in_sentence
from pipediag.reporters.words.quantities import NO_BREAK, counted, duration, number, percent
from pipediag.session.devices import DeviceActivity

_LEAST_PERCENT = 0.05
"""Less would be shown as nothing."""


@dataclass(frozen=True)
class Summary:
    """`lead` and `rest` make one sentence without its full stop."""

    lead: str
    rest: str


def summary(device: DeviceActivity, name: str) -> Summary:
    """What an engineer asks first; a copy without a kernel beside it is no computing."""
    main = main_part(device)
    mostly = f"mostly {in_sentence(main)}" if main else ""
    if device.kind == "cpu":
        lead = f"The model's operations ran {percent(compute_percent(device))}"
        rest = f" of {duration(device.span_ms)}" + (f"; {mostly}" if mostly else "")
        return Summary(lead=f"No accelerator. {lead}", rest=rest)
    does = "is busy" if device.compute_ms is None else "computes"
    rest = ", ".join([*_others(device), *([mostly] if mostly else [])])
    return Summary(
        lead=f"{name} {does} {percent(compute_percent(device))}",
        rest=f" of {duration(device.span_ms)}" + (f": {rest}" if rest else ""),
    )


def compute_percent(device: DeviceActivity) -> float:
    """The part of the window in which kernels other than collectives ran.

    Busy time where that is not known, as on a CPU that stands for the device.
    """
    if device.compute_ms is None:
        return device.busy_percent
    return _percent(device.compute_ms, device)


def gap_counts(device: DeviceActivity) -> str:
    """In how many gaps the idle time lies; those under the floor are counted apart."""
    floor = f"{number(device.gap_floor_us)}{NO_BREAK}µs"
    short = sum(
        bucket.count
        for bucket in device.gap_histogram
        if bucket.to_us is not None and bucket.to_us <= device.gap_floor_us
    )
    if not device.gap_count:
        return f" in {counted(short, 'gap')} under {floor}" if short else ""
    found = f" in {counted(device.gap_count, 'gap')} of {floor} or more"
    if device.gap_count > 1:
        found += f", the longest {duration(device.longest_gap_ms)}"
    return found + (f", and {counted(short, 'shorter one')}" if short else "")


def _others(device: DeviceActivity) -> Iterator[str]:
    """What the device did while it did not compute; idle time last, as its cause follows."""
    parts = (
        (_percent(device.exposed_copy_ms, device), "only copying"),
        (_percent(device.exposed_collective_ms, device), "only collectives"),
        (device.idle_percent, "idle"),
    )
    for share, label in parts:
        if share >= _LEAST_PERCENT:
            yield f"{percent(share)} {label}"


def _percent(ms: float | None, device: DeviceActivity) -> float:
    return 100.0 * ms / device.span_ms if ms and device.span_ms else 0.0
