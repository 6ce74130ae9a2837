"""Each device's busy and idle time, its idle gaps with their causes, its copies and its kernels.

Busy is the union of every kernel, copy and set on every stream of the device; a gap is a time in
which no stream has any. On a machine without an accelerator the executor threads' operations take
the device's place, under the name `CPU`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pipediag.trace import GAP_FLOOR_NS
from pipediag.trace.device.copies import Copies, device_copies
from pipediag.trace.device.gap_details import GapDetails, gap_details
from pipediag.trace.device.gap_histogram import LengthBucket, gap_histogram
from pipediag.trace.device.gaps import HostActivity, divide_gaps, host_activity, next_launches
from pipediag.trace.device.kernels import Kernel, KernelLaunches, device_kernels, kernel_launches
from pipediag.trace.device.launches import LaunchCalls, host_lead_ns, launch_calls
from pipediag.trace.device.streams import DeviceEvents, device_events
from pipediag.trace.events import Plane, TraceEvents
from pipediag.trace.host.classes import Activity
from pipediag.trace.intervals import EMPTY, Intervals, clip, gaps, subtract, total, union
from pipediag.trace.pipeline.records import Records
from pipediag.vocabulary import GAP_CAUSES, GapCause

Window = tuple[int, int]

_AMD = "AMD"
_LARGEST_INT32 = np.iinfo(np.int32).max
_NO_LAUNCHES: tuple[None, NDArray[np.intp]] = None, np.empty(0, np.intp)


@dataclass(frozen=True)
class DeviceGaps:
    """The gaps that are no shorter than the floor, in order of time."""

    spans: Intervals
    split_ns: NDArray[np.signedinteger]
    """Shape (gaps, causes): nanoseconds of each gap by cause, columns as in `GAP_CAUSES`."""
    details: GapDetails

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def lengths_ns(self) -> NDArray[np.int64]:
        lengths: NDArray[np.int64] = self.spans[:, 1] - self.spans[:, 0]
        return lengths

    @property
    def causes(self) -> list[GapCause]:
        """The cause of most of each gap; of equal ones, the first of `GAP_CAUSES`."""
        return [GAP_CAUSES[column] for column in np.argmax(self.split_ns, axis=1).tolist()]

    def by_cause(self) -> dict[GapCause, int]:
        """Nanoseconds of each cause over all gaps, where there are any."""
        sums = self.split_ns.sum(axis=0).tolist()
        return {cause: ns for cause, ns in zip(GAP_CAUSES, sums, strict=True) if ns}


@dataclass(frozen=True)
class Overlap:
    """How much of the window each class of activity ran, and how much of that it ran alone."""

    compute_ns: int
    copy_ns: int
    exposed_copy_ns: int
    """Copies while no kernel ran."""
    collective_ns: int
    exposed_collective_ns: int
    """Collectives while no other kernel ran."""


@dataclass(frozen=True)
class DeviceTrace:
    """One device; span = busy + idle, idle = gaps + noise."""

    name: str
    kind: str
    """`gpu` or `cpu`."""
    window: Window
    """The steps; without steps, first start to last end on the device."""
    busy_ns: int
    idle_ns: int
    longest_gap_ns: int
    noise_ns: int
    """Gaps under the floor, summed."""
    gap_floor_ns: int
    gap_histogram: tuple[LengthBucket, ...]
    """Of all gaps, also of those under the floor."""
    gaps: DeviceGaps = field(repr=False)
    model: str | None = None
    overlap: Overlap | None = None
    copies: tuple[Copies, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    """The longest first; a collective counts as one."""
    launches: KernelLaunches | None = None

    @property
    def span_ns(self) -> int:
        return self.window[1] - self.window[0]


def device_traces(
    events: TraceEvents,
    activity: Activity,
    records: Records,
    window: Window | None,
    gap_floor_ns: int = GAP_FLOOR_NS,
) -> list[DeviceTrace]:
    """Every device on which something ran, within the window where there is one."""
    host = host_activity(events, activity.by_class)
    calls = launch_calls(events)
    devices = [device_events(plane) for plane in events.accelerators]
    if lead_ns := host_lead_ns(devices, calls):
        host, calls = host.earlier(lead_ns), calls.earlier(lead_ns)
    explain = _Explainer(activity, records, host, calls, gap_floor_ns)
    if not devices:
        return explain.processor(window)
    busy = [device.busy for device in devices]
    return [
        explain.accelerator(device, union(*busy[:place], *busy[place + 1 :]), window)
        for place, device in enumerate(devices)
        if len(device.busy)
    ]


@dataclass(frozen=True)
class _Explainer:
    """What is the same for all devices of a profile."""

    activity: Activity
    records: Records
    host: HostActivity
    calls: LaunchCalls
    gap_floor_ns: int

    def processor(self, window: Window | None) -> list[DeviceTrace]:
        """The CPU in place of a device, where its executor's operations were recorded."""
        busy = self.activity.by_class["device_compute"]
        if not len(busy):
            return []
        window = window or (int(busy[0, 0]), int(busy[-1, 1]))
        return [self._describe("CPU", "cpu", clip(busy, *window), window, EMPTY, _NO_LAUNCHES)]

    def accelerator(
        self, recorded: DeviceEvents, others: Intervals, window: Window | None
    ) -> DeviceTrace:
        """One device, beside the time in which any other device was busy."""
        name = recorded.plane.name.removeprefix("/device:")
        window = window or (int(recorded.busy[0, 0]), int(recorded.busy[-1, 1]))
        launched_by = self.calls.of(recorded)
        device, inside = _within(recorded, window)
        compute, copies = device.running("device_compute"), device.running("device_copy")
        collectives = device.running("collective")
        kernels = union(compute, collectives)
        found = self._describe(name, "gpu", device.busy, window, others, (recorded, launched_by))
        return replace(
            found,
            model=_model(device.plane),
            overlap=Overlap(
                compute_ns=total(compute),
                copy_ns=total(copies),
                exposed_copy_ns=total(subtract(copies, kernels)),
                collective_ns=total(collectives),
                exposed_collective_ns=total(subtract(collectives, compute)),
            ),
            copies=device_copies(device, kernels),
            kernels=device_kernels(device),
            launches=kernel_launches(device, launched_by[inside], self.calls),
        )

    def _describe(
        self,
        name: str,
        kind: str,
        busy: Intervals,
        window: Window,
        others: Intervals,
        launched: tuple[DeviceEvents | None, NDArray[np.intp]],
    ) -> DeviceTrace:
        idle = gaps(busy, *window)
        lengths = idle[:, 1] - idle[:, 0]
        long = idle[lengths >= self.gap_floor_ns]
        # A long profile has many short ones, of which only the lengths are needed.
        del idle
        launches = next_launches(long, *launched, self.calls)
        split = divide_gaps(long, self.host, launches, others)
        if lengths.max(initial=0) <= _LARGEST_INT32:
            split = split.astype(np.int32)
        return DeviceTrace(
            name=name,
            kind=kind,
            window=window,
            busy_ns=total(busy),
            idle_ns=int(lengths.sum()),
            longest_gap_ns=int(lengths.max(initial=0)),
            noise_ns=int(lengths[lengths < self.gap_floor_ns].sum()),
            gap_floor_ns=self.gap_floor_ns,
            gap_histogram=gap_histogram(lengths, self.gap_floor_ns),
            gaps=DeviceGaps(
                spans=long,
                split_ns=split,
                details=gap_details(long, self.records, launches, self.calls, self.activity.line),
            ),
        )


def _within(device: DeviceEvents, window: Window) -> tuple[DeviceEvents, NDArray[np.bool_]]:
    """The events that lie in the window, cut at its edges, and which of the recorded they are."""
    inside = (device.end_ns > window[0]) & (device.start_ns < window[1])
    # What takes no time at the edge of a window without steps is still the device's.
    inside |= (device.start_ns >= window[0]) & (device.end_ns <= window[1])
    cut = replace(
        device,
        line_ids=device.line_ids[inside],
        indices=device.indices[inside],
        start_ns=np.maximum(device.start_ns[inside], window[0]),
        end_ns=np.minimum(device.end_ns[inside], window[1]),
        name_ids=device.name_ids[inside],
        classes=device.classes[inside],
    )
    return cut, inside


def _model(plane: Plane) -> str | None:
    """What the profile calls the device, with its compute capability or AMD's target."""
    names = (plane.stats.get(key) for key in ("gpu_device_name", "device_type_string"))
    name = next((name for name in names if isinstance(name, str)), "")
    amd = any(str(text).startswith(_AMD) for text in (name, plane.stats.get("device_vendor")))
    name = name or (_AMD if amd else "")
    major, minor = plane.stats.get("compute_cap_major"), plane.stats.get("compute_cap_minor")
    parts = [name] if name else []
    if isinstance(major, int) and isinstance(minor, int):
        # AMD's runtime puts the numbers of its target there: 9 and 4 of gfx942.
        parts.append(f"gfx{major}{minor}x" if amd else f"compute capability {major}.{minor}")
    return ", ".join(parts) or None
