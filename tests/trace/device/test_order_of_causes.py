"""Where the host did several things at once, which of them an idle device is put down to."""

from __future__ import annotations

import numpy as np

from pipediag.trace.device.gaps import HostActivity, NextLaunches, divide_gaps, host_activity
from pipediag.trace.intervals import EMPTY, Intervals, normalise
from pipediag.vocabulary import GAP_CAUSES, StepClass
from tests.trace.builder import TraceBuilder
from tests.trace.device.test_gap_details import events_of


def until(end: int) -> Intervals:
    return normalise([0], [end])


def causes(host: HostActivity, gap: Intervals, other_devices: Intervals) -> dict[str, int]:
    """Of a gap that no call ended."""
    nothing = np.zeros(1, np.int64)
    no = np.zeros(1, np.bool_)
    launches = NextLaunches(no, nothing, nothing, no, nothing.astype(np.int32), nothing)
    [row] = divide_gaps(gap, host, launches, other_devices).tolist()
    return {cause: ns for cause, ns in zip(GAP_CAUSES, row, strict=True) if ns}


def busy_host() -> HostActivity:
    """All that a host can do, each thing ten nanoseconds longer than the one it yields to."""
    builder = TraceBuilder()
    host = builder.host()
    host.line("python").event("MemcpyH2D", 0, 30, correlation_id=1)
    host.line("tf_Compute/1").event("metric/EagerPyFunc:EagerPyFunc", 0, 50)
    by_class: dict[StepClass, Intervals] = {
        "input_wait": until(10),
        "compile": until(20),
        "device_wait": until(40),
        "dispatch": until(60),
        "python": until(70),
    }
    return host_activity(events_of(builder), by_class)


def test_each_cause_yields_to_those_before_it() -> None:
    assert causes(busy_host(), until(80), EMPTY) == {
        "input": 10,
        "compile": 10,
        "copy": 10,
        # Before Python: a thread that waits for the device holds it up, whatever function the
        # graph runs meanwhile.
        "sync": 10,
        # The function in the graph, and after the launches what is left of the thread's Python.
        "python": 20,
        "launch": 10,
        "unknown": 10,
    }


def test_waiting_for_a_device_that_is_busy_is_waiting_for_the_other() -> None:
    found = causes(busy_host(), until(100), normalise([35], [90]))
    assert (found["sync"], found["collective"]) == (5, 5 + 20)
    assert (found["python"], found["launch"], found["unknown"]) == (20, 10, 10)
