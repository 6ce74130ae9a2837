"""A device's longest gaps, those of one cause and place together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipediag.reporters.words.idle_time import longest_gaps, shown_iterator
from pipediag.session.devices import DeviceActivity, DeviceGap

GROUPED_GAPS = 200
"""What the launching thread was in is looked up for that many; more would have no place."""


@dataclass(frozen=True)
class GapGroup:
    """Gaps of one cause and place."""

    cause: str
    place: str
    """Empty where it is not known; with the step where there is but one gap."""
    count: int
    ms: float
    start_ms: float
    """Of the longest."""

    @property
    def mean_ms(self) -> float:
        """The length of one of them."""
        return self.ms / self.count


def gap_groups(device: DeviceActivity) -> list[GapGroup]:
    """Those that took most time together first."""
    found: dict[tuple[str, str], list[DeviceGap]] = {}
    for gap in longest_gaps(device, GROUPED_GAPS):
        found.setdefault((gap.cause, ", ".join(_place(gap))), []).append(gap)
    groups = [_group(cause, place, gaps) for (cause, place), gaps in found.items()]
    return sorted(groups, key=lambda group: -group.ms)


def _group(cause: str, place: str, gaps: list[DeviceGap]) -> GapGroup:
    longest = gaps[0]
    if len(gaps) == 1 and longest.step is not None:
        place = f"{place}, step {longest.step}" if place else f"step {longest.step}"
    return GapGroup(
        cause=cause,
        place=place,
        count=len(gaps),
        ms=sum(gap.duration_ms for gap in gaps),
        start_ms=longest.start_ms,
    )


def _place(gap: DeviceGap) -> Iterator[str]:
    """The most telling first: the end of the line may be cut off."""
    if gap.file is not None:
        yield gap.file if gap.line is None else f"{gap.file}:{gap.line}"
    if gap.iterator is not None:
        yield shown_iterator(gap.iterator)
    elif gap.doing is not None:
        yield f"in {gap.doing}"
