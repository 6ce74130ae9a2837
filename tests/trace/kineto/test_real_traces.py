"""The real traces beside the checkout, against HolisticTraceAnalysis 0.5.0.

Its temporal breakdown differs from the device's busy time in three ways:

- It leaves out what the last profiler step launched. Here the same is left out to compare.
- It holds microseconds since 1970 in 64-bit floats, which are a quarter of a microsecond apart.
- It rounds starts up and ends down to whole microseconds, so that a kernel loses one on average
  and two at most.

The control trace has whole microseconds, and the figures are equal. In the other one 4,876 kernels,
none of which overlap, lose 3.661 ms; the exact figure is the right one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pipediag.trace.events import Line, TraceEvents
from pipediag.trace.intervals import Intervals, normalise, total, union
from pipediag.trace.reader import read_file

TRACES = Path(__file__).parents[4] / "shared" / "traces"
FLOAT_SPACING_NS = 250
US = 1_000

pytestmark = pytest.mark.skipif(
    not TRACES.is_dir(), reason="needs the real accelerator traces in ../shared/traces"
)


def named(line: Line, prefix: str) -> NDArray[np.bool_]:
    return line.named([key for key, name in line.used_names.items() if name.startswith(prefix)])


def launched_before(events: TraceEvents, time_ns: int) -> NDArray[np.int64]:
    found = []
    for line in events.host_lines:
        early = np.flatnonzero(line.start_ns < time_ns)
        values, present = line.statistics.integers("correlation_id", early)
        found.append(values[present])
    return np.concatenate(found)


def compared(events: TraceEvents) -> tuple[Intervals, int]:
    """When the device was busy with what the other tool looks at, and how many events that are."""
    starts = [line.start_ns[named(line, "ProfilerStep#")] for line in events.host_lines]
    launched = launched_before(events, int(np.concatenate(starts).max()))
    [device] = events.accelerators
    sets, count = [], 0
    for line in device.lines:
        ids = line.integers("correlation_id", np.arange(len(line)))
        kept = np.isin(ids, launched)
        sets.append(normalise(line.start_ns[kept], line.end_ns[kept]))
        count += int(kept.sum())
    return union(*sets), count


@pytest.mark.parametrize(
    ("name", "count", "span_ns", "busy_ns", "reference_span_us", "reference_busy_us"),
    [
        ("control", 7_875, 383_404_000, 321_285_000, 383_404, 321_285),
        ("ns", 4_876, 384_634_463, 378_181_762, 384_634, 374_521),
    ],
)
def test_busy_time_is_the_reference_to_its_rounding(
    name: str,
    count: int,
    span_ns: int,
    busy_ns: int,
    reference_span_us: int,
    reference_busy_us: int,
) -> None:
    busy, events = compared(read_file(TRACES / f"torch-kineto-{name}.json.gz"))
    assert (events, int(busy[-1, 1] - busy[0, 0]), total(busy)) == (count, span_ns, busy_ns)
    lost_at_most = 2 * (US + FLOAT_SPACING_NS)
    assert 0 <= span_ns - reference_span_us * US <= lost_at_most
    assert 0 <= busy_ns - reference_busy_us * US <= count * lost_at_most


@pytest.mark.parametrize(
    ("name", "device", "span_ns", "busy_ns"),
    [
        ("control", "/device:GPU:3", 464_594_000, 388_587_000),
        ("ns", "/device:GPU:0", 480_029_179, 472_454_441),
    ],
)
def test_the_whole_recording(name: str, device: str, span_ns: int, busy_ns: int) -> None:
    events = read_file(TRACES / f"torch-kineto-{name}.json.gz")
    [plane] = events.accelerators
    busy = union(*(normalise(line.start_ns, line.end_ns) for line in plane.lines))
    assert (plane.name, int(busy[-1, 1] - busy[0, 0]), total(busy)) == (device, span_ns, busy_ns)
    assert events.host_lines[0].name.startswith("thread ")
    assert events.warnings == []
