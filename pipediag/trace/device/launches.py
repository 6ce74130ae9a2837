"""Which call of the host launched each activity of a device.

CUPTI, ROCTracer and Kineto give both the same correlation id. The call may lie on another thread
than the training loop's, and ids may come again in a long profile: then the latest call that began
before the activity ended is the one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.device.streams import DeviceEvents
from pipediag.trace.events import Line, TraceEvents
from pipediag.trace.host.training_graph import names_with

CORRELATION = "correlation_id"
NOT_FOUND = -1

COPY_CALL = re.compile(r"(cu|cuda|hip)?Memcpy(?! ?D(2|to)D)")
"""Calls that may block while bytes move between host and device. CUPTI's events of TensorFlow and
JAX are named after what was launched, so that a copy's call is `MemcpyH2D` like the copy itself."""


@dataclass(frozen=True)
class LaunchCalls:
    """Every call of the host that started something on a device, by correlation id and start."""

    lines: list[Line]
    correlation_ids: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    line_ids: NDArray[np.int32]
    """The place of the call's line in `lines`."""
    copies: NDArray[np.bool_]
    """Which calls copy memory from or to the host."""

    def __len__(self) -> int:
        return len(self.correlation_ids)

    def of(self, device: DeviceEvents) -> NDArray[np.intp]:
        """For each activity of the device its call's place here, or `NOT_FOUND`."""
        found = np.full(len(device.start_ns), NOT_FOUND, np.intp)
        if not len(self):
            return found
        ids, present = device.integers(CORRELATION)
        begun = self._last_before(ids, device.end_ns)
        fits = present & (begun >= 0) & (self.correlation_ids[begun] == ids)
        found[fits] = begun[fits]
        alone = present & ~fits & self._only_once(ids)
        found[alone] = np.searchsorted(self.correlation_ids, ids[alone])
        return found

    def earlier(self, by_ns: int) -> LaunchCalls:
        """The same on a clock that is set back."""
        return replace(self, start_ns=self.start_ns - by_ns, end_ns=self.end_ns - by_ns)

    def _only_once(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Ids that a single call has: whatever the clocks say, it is that one."""
        first = np.searchsorted(self.correlation_ids, ids, side="left")
        behind = np.searchsorted(self.correlation_ids, ids, side="right")
        once: NDArray[np.bool_] = behind - first == 1
        return once

    def _last_before(self, ids: NDArray[np.int64], times_ns: NDArray[np.int64]) -> NDArray[np.intp]:
        """The last call at or before (id, time) in the order of both; -1 before the first."""
        known = np.unique(self.correlation_ids)
        first = int(self.start_ns.min())
        span = int(self.start_ns.max()) - first + 2
        ranks = np.searchsorted(known, ids, side="right") - 1
        times = np.clip(times_ns - first, -1, span - 2) + 1
        calls = np.searchsorted(known, self.correlation_ids) * span + (self.start_ns - first + 1)
        return np.searchsorted(calls, ranks * span + times, side="right") - 1


def host_lead_ns(devices: Sequence[DeviceEvents], calls: LaunchCalls) -> int:
    """How far the host's clock is ahead of the devices', as far as launches show it.

    Nothing starts before the call that launches it. By the largest time by which something seems
    to, the host's clock must be ahead; one that is behind can't be told from slow launches.
    """
    leads = [0]
    for device in devices:
        launched_by = calls.of(device)
        matched = launched_by != NOT_FOUND
        if matched.any():
            lead = calls.start_ns[launched_by[matched]] - device.start_ns[matched]
            leads.append(int(lead.max()))
    return max(leads)


def launch_calls(events: TraceEvents) -> LaunchCalls:
    """The launch calls on all threads of the host."""
    lines: list[Line] = []
    columns: list[tuple[NDArray[Any], ...]] = []
    for line in events.host_lines:
        keys = names_with(line, CORRELATION)
        if not keys:
            continue
        indices = np.flatnonzero(line.named(keys))
        ids, present = line.statistics.integers(CORRELATION, indices)
        indices, ids = indices[present], ids[present]
        copying = [key for key in keys if COPY_CALL.match(line.plane.names[key])]
        place = np.full(len(indices), len(lines))
        copies = np.isin(line.name_ids[indices], copying)
        columns.append((ids, line.start_ns[indices], line.end_ns[indices], place, copies))
        lines.append(line)
    ids, start_ns, end_ns, places, copies = (
        np.concatenate([np.empty(0, np.int64), *(column[number] for column in columns)])
        for number in range(5)
    )
    order = np.lexsort((start_ns, ids))
    return LaunchCalls(
        lines=lines,
        correlation_ids=ids[order],
        start_ns=start_ns[order],
        end_ns=end_ns[order],
        line_ids=places[order].astype(np.int32),
        copies=copies[order].astype(np.bool_),
    )
