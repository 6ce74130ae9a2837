"""A device's copies by direction: how many, how long, how many bytes, and how much is exposed.

The direction comes from CUPTI's or Kineto's name, or else from the kinds of memory in CUPTI's
`memcpy_details`. AMD's copy kernels say none. Sizes come from `memcpy_details` (`size:4096` since
2020, `num_bytes:4096` before) or Kineto's `bytes`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.device.streams import DeviceEvents
from pipediag.trace.intervals import Intervals, normalise, subtract, total
from pipediag.vocabulary import COPY_DIRECTIONS, CopyDirection

_BY_NAME: tuple[tuple[re.Pattern[str], CopyDirection], ...] = (
    (re.compile(r"Mem(set)|__amd_rocclr_fill"), "set"),
    (re.compile(r"Memcpy ?H(2|to)D|CopyHostToDevice"), "host_to_device"),
    (re.compile(r"Memcpy ?D(2|to)H|CopyDeviceToHost"), "device_to_host"),
    (re.compile(r"Memcpy ?(P2P|PtoP)"), "peer_to_peer"),
    (re.compile(r"Memcpy ?D(2|to)D|CopyDeviceToDevice"), "device_to_device"),
)
_SIZE = re.compile(r"\b(?:size|num_bytes):(\d+)")
_KINDS = re.compile(r"kind_src:(\w+)\s+kind_dst:(\w+)")
_HOST_MEMORY = ("pageable", "pinned", "host")


@dataclass(frozen=True)
class Copies:
    """All copies of one direction."""

    direction: CopyDirection
    count: int
    running_ns: int
    """In which at least one of them ran."""
    summed_ns: int
    exposed_ns: int
    """The part of `running_ns` in which no kernel ran."""
    bytes: int | None
    """None where a copy does not say its size."""


def device_copies(device: DeviceEvents, kernels: Intervals) -> tuple[Copies, ...]:
    """The copies of each direction that occurs, longest first; `kernels` is when any kernel ran."""
    chosen = np.flatnonzero(device.of_class("device_copy"))
    details = [_details(device, index) for index in chosen.tolist()]
    directions = np.array([COPY_DIRECTIONS.index(direction) for direction, _ in details], int)
    found = []
    for number in np.unique(directions).tolist():
        here = directions == number
        sizes = [size for (_, size), inside in zip(details, here, strict=True) if inside]
        found.append(_copies(device, COPY_DIRECTIONS[number], chosen[here], sizes, kernels))
    return tuple(sorted(found, key=lambda copies: -copies.summed_ns))


def _copies(
    device: DeviceEvents,
    direction: CopyDirection,
    chosen: NDArray[np.intp],
    sizes: list[int | None],
    kernels: Intervals,
) -> Copies:
    start_ns, end_ns = device.start_ns[chosen], device.end_ns[chosen]
    running = normalise(start_ns, end_ns)
    known = [size for size in sizes if size is not None]
    return Copies(
        direction=direction,
        count=len(chosen),
        running_ns=total(running),
        summed_ns=int((end_ns - start_ns).sum()),
        exposed_ns=total(subtract(running, kernels)),
        bytes=sum(known) if len(known) == len(sizes) else None,
    )


def _details(device: DeviceEvents, index: int) -> tuple[CopyDirection, int | None]:
    line = device.lines[int(device.line_ids[index])]
    place = int(device.indices[index])
    stats = line.stats(place)
    details = str(stats.get("memcpy_details", stats.get("memset_details", "")))
    size = stats.get("bytes")
    if not isinstance(size, int):
        written = _SIZE.search(details)
        size = int(written.group(1)) if written else None
    return _direction(line.event_name(place), details), size


def _direction(name: str, details: str) -> CopyDirection:
    for pattern, direction in _BY_NAME:
        if pattern.match(name):
            return direction
    kinds = _KINDS.search(details)
    if kinds is None:
        return "unknown"
    source, target = (kind in _HOST_MEMORY for kind in kinds.groups())
    if source and target:
        return "unknown"
    if source:
        return "host_to_device"
    return "device_to_host" if target else "device_to_device"
