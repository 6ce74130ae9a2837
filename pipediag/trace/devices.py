"""Each device's busy and idle time, its idle gaps with their causes, its copies and its kernels.

Busy is the union of every kernel, copy and set on every stream of the device; a gap is a time in
which no stream has any. On a machine without an accelerator the executor threads' operations take
the device's place, under the name `CPU`.

Directions and sizes of copies come from CUPTI's or Kineto's names and details; AMD's copy kernels
have none. Names tell which kernels are matrix products, and which of those use tensor cores:
`volta_sgemm_128x64_nn` does not, `volta_h884gemm`, `ampere_s16816gemm`, `sm80_xmma_gemm_...`,
`hopper_hgmma` and AMD's `Cijk_..._MI16x16x4x1` do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipediag.session.devices import DeviceActivity, DeviceCopies, DeviceKernel
from pipediag.trace import GAP_FLOOR_NS
from pipediag.trace.classes import Activity
from pipediag.trace.device_events import NOT_FOUND, DeviceEvents, LaunchCalls, launch_calls
from pipediag.trace.events import Plane, Times, TraceEvents
from pipediag.trace.gaps import DeviceGaps, explain_gaps, host_causes
from pipediag.trace.intervals import EMPTY, Intervals, normalise, subtract, total, union
from pipediag.trace.pipeline import Records, Window
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
_MATMUL = re.compile(
    r"gemm|gemv|nvjet|cutlass|xmma|gmma|Cijk_|matmul|winograd|scudnn|implicit_con|conv(?!ert)\w*(2d|3d|fwd|_)"
    r"|wgrad|dgrad|MIOpen\w*Conv",
    re.IGNORECASE,
)
# XLA's and Triton's kernels are named after what they compute, not how.
_COMPILED = re.compile(r"fusion|triton", re.IGNORECASE)
_TENSOR_CORE = re.compile(
    r"[hs]?(884|1688|16816|8816|16832)|tensor\w*\d+x\d+|tensorop|nvjet|[hiqs]?mma_|gmma|wmma|imma|hmma"
    r"|_MI\d+x\d+",
    re.IGNORECASE,
)
# Products in float32, whose names begin as those on tensor cores do.
_OTHER_CORES = re.compile(r"ffma|simt", re.IGNORECASE)
# Tensor cores take eight values in a row of TF32 from Ampere on, where 16 bits are named. That
# `nvjet_s` is TF32 follows from the types in the name, first that of the inputs: `s` is float32.
_TF32 = re.compile(r"tf32|^(?!.*f(p|loat)?16).*s1688|nvjet_s", re.IGNORECASE)
_AMD = "AMD"
Launched = tuple[Times, NDArray[np.intp]]
"""Starts of a device's activities, and the place of each one's call."""
_NO_LAUNCHES: Launched = np.empty(0, np.int64), np.empty(0, np.intp)

MOST_KERNELS = 20
"""Kept by name, those that took most time; the sums hold all."""


@dataclass(frozen=True)
class DeviceTrace:
    """One device: its record, with no gap in it, and its gaps as columns."""

    activity: DeviceActivity
    window: Window
    """The steps; without steps, first start to last end on the device."""
    gaps: DeviceGaps = field(repr=False)
    """Gaps that are no shorter than the floor."""

    @property
    def name(self) -> str:
        return self.activity.name


def device_traces(
    events: TraceEvents,
    activity: Activity,
    records: Records,
    window: Window | None,
) -> list[DeviceTrace]:
    """Describe every device on which something ran, within the window where there is one.

    Without an accelerator it is the CPU, where its executor's operations were recorded.
    """
    host = host_causes(events, activity.by_class)
    calls, devices = launch_calls(events), activity.devices

    def described(
        name: str, kind: str, busy: Intervals, others: Intervals, launched: Launched
    ) -> DeviceTrace:
        within = window or (int(busy[0, 0]), int(busy[-1, 1]))
        whole = normalise(within[:1], within[1:])
        idle = subtract(whole, busy)
        lengths = idle[:, 1] - idle[:, 0]
        noise = lengths[lengths < GAP_FLOOR_NS]
        # A long profile has many short ones, of which only the lengths are needed.
        idle = idle[lengths >= GAP_FLOOR_NS]
        explained = explain_gaps(idle, host, others, *launched, calls, records, activity.line)
        span_ns, idle_ns = total(whole), int(lengths.sum())
        busy_ns = span_ns - idle_ns
        found = DeviceActivity(
            name=name,
            kind=kind,
            span_ms=span_ns / 1e6,
            busy_ms=busy_ns / 1e6,
            idle_ms=idle_ns / 1e6,
            busy_percent=100.0 * busy_ns / span_ns if span_ns else 0.0,
            idle_percent=100.0 * idle_ns / span_ns if span_ns else 0.0,
            longest_gap_ms=int(lengths.max(initial=0)) / 1e6,
            noise_ms=int(noise.sum()) / 1e6,
            noise_count=len(noise),
            gap_floor_us=GAP_FLOOR_NS / 1e3,
            causes_ms={cause: ns / 1e6 for cause, ns in explained.by_cause().items()},
            gap_count=len(idle),
            gaps=[],
        )
        return DeviceTrace(found, within, explained)

    if not devices:
        busy = activity.by_class["device_compute"]
        return [described("CPU", "cpu", busy, EMPTY, _NO_LAUNCHES)] if len(busy) else []
    found = []
    for place, device in enumerate(devices):
        if not len(device.busy):
            continue
        others = union(*(other.busy for other in [*devices[:place], *devices[place + 1 :]]))
        launched_by = calls.of(device)
        name = device.plane.name.removeprefix("/device:")
        trace = described(name, "gpu", device.busy, others, (device.start_ns, launched_by))
        inside, chosen = device.within(*trace.window)
        found.append(_with_work(trace, inside, launched_by[chosen], calls))
    return found


def _with_work(
    trace: DeviceTrace, device: DeviceEvents, launched_by: NDArray[np.intp], calls: LaunchCalls
) -> DeviceTrace:
    compute, copies = device.running("device_compute"), device.running("device_copy")
    collectives = device.running("collective")
    kernels = union(compute, collectives)
    work = {
        "model": _model(device.plane),
        "compute_ms": total(compute) / 1e6,
        "exposed_copy_ms": total(subtract(copies, kernels)) / 1e6,
        "collective_ms": total(collectives) / 1e6,
        "exposed_collective_ms": total(subtract(collectives, compute)) / 1e6,
        "copies": _copies(device, kernels),
        **_kernels(device, launched_by, calls),
    }
    return replace(trace, activity=trace.activity.but(**work))


def _model(plane: Plane) -> str | None:
    """Return the device's name, with its compute capability or AMD's target."""
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


def _copies(device: DeviceEvents, kernels: Intervals) -> list[DeviceCopies]:
    """Return the copies of each direction, longest first; `kernels` is when any kernel ran."""
    of_direction: dict[CopyDirection, list[tuple[int, int | None]]] = {}
    for index in np.flatnonzero(device.of_class("device_copy")).tolist():
        line, place = device.lines[device.line_ids[index]], int(device.indices[index])
        stats = line.stats(place)
        details = str(stats.get("memcpy_details", stats.get("memset_details", "")))
        size = stats.get("bytes")
        if not isinstance(size, int):
            written = _SIZE.search(details)
            size = int(written.group(1)) if written else None
        direction = _direction(line.event_name(place), details)
        of_direction.setdefault(direction, []).append((index, size))
    found = []
    for direction, copies in of_direction.items():
        places = [index for index, _ in copies]
        known = [size for _, size in copies if size is not None]
        start_ns, end_ns = device.start_ns[places], device.end_ns[places]
        running, summed_ns = normalise(start_ns, end_ns), int((end_ns - start_ns).sum())
        count_bytes = sum(known) if len(known) == len(copies) else None
        one = DeviceCopies(
            direction=direction,
            count=len(copies),
            ms=total(running) / 1e6,
            exposed_ms=total(subtract(running, kernels)) / 1e6,
            bytes=count_bytes,
            gb_per_s=count_bytes / summed_ns if count_bytes is not None and summed_ns else None,
        )
        found.append(one)
    return sorted(found, key=lambda one: (-one.ms, COPY_DIRECTIONS.index(one.direction)))


def _direction(name: str, details: str) -> CopyDirection:
    for pattern, direction in _BY_NAME:
        if pattern.match(name):
            return direction
    kinds = _KINDS.search(details)
    if kinds is None:
        return "unknown"
    from_host, to_host = (kind in _HOST_MEMORY for kind in kinds.groups())
    if from_host:
        return "unknown" if to_host else "host_to_device"
    return "device_to_host" if to_host else "device_to_device"


def _kernels(
    device: DeviceEvents, launched_by: NDArray[np.intp], calls: LaunchCalls
) -> dict[str, Any]:
    """Return the kernels that ran, the one that took most time first, matrix products' time, and
    the delay of the first kernel of each call, as a CUDA graph launches many."""
    chosen = np.flatnonzero(~device.of_class("device_copy"))
    if not len(chosen):
        return {}
    names, lengths = device.name_ids[chosen], (device.end_ns - device.start_ns)[chosen]
    counts = np.bincount(names)
    totals = np.bincount(names, weights=lengths)
    by_name: dict[str, tuple[int, int]] = {}
    for key in np.flatnonzero(counts).tolist():
        count, total_ns = by_name.get(device.plane.names[key], (0, 0))
        by_name[device.plane.names[key]] = count + int(counts[key]), total_ns + int(totals[key])
    uses = {name: uses_tensor_cores(name) for name in by_name}
    products = sum(by_name[name][1] for name, known in uses.items() if known is not None)
    on_tensor_cores = {name: by_name[name][1] for name, known in uses.items() if known}
    in_tf32 = sum(ns for name, ns in on_tensor_cores.items() if _TF32.search(name))
    longest = sorted(by_name.items(), key=lambda one: -one[1][1])[:MOST_KERNELS]
    matched = chosen[launched_by[chosen] != NOT_FOUND]
    # Events are in order of their start.
    call, first = np.unique(launched_by[matched], return_index=True)
    delays = np.maximum(device.start_ns[matched[first]] - calls.end_ns[call], 0)
    return {
        "matmul_ms": products / 1e6,
        "tensor_core_ms": sum(on_tensor_cores.values()) / 1e6,
        "tf32_ms": in_tf32 / 1e6,
        "kernels": [
            DeviceKernel(name=name, count=count, ms=total_ns / 1e6)
            for name, (count, total_ns) in longest
        ],
        "kernel_count": len(chosen),
        "median_kernel_us": float(np.median(lengths)) / 1e3,
        "median_delay_us": float(np.median(delays)) / 1e3 if len(delays) else None,
    }


def uses_tensor_cores(kernel: str) -> bool | None:
    """Return None where it is no matrix product, or a compiler's whose name does not say."""
    uses = _TENSOR_CORE.search(kernel) is not None and _OTHER_CORES.search(kernel) is None
    if _MATMUL.search(kernel) is None or (not uses and _COMPILED.search(kernel) is not None):
        return None
    return uses
