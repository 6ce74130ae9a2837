from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace.device_events import LaunchCalls
from pipediag.trace.events import Line, TraceEvents
from pipediag.trace.gaps import DeviceGaps, HostCauses, divide_gaps, explain_gaps, host_causes
from pipediag.trace.intervals import EMPTY, Intervals, normalise
from pipediag.trace.xplane import parse
from pipediag.vocabulary import GAP_CAUSES, StepClass
from tests.trace.builder import (
    US,
    CudaProfile,
    TraceBuilder,
    add_events,
    causes_us,
    graph_call,
    main_causes,
)


def test_a_device_that_waits_for_input(tmp_path: Path) -> None:
    profile = CudaProfile()
    profile.steps(0, 100, 200)
    for start in (0, 100):
        profile.did("IteratorGetNextOp::DoCompute", start, start + 60, id=7)
        profile.kernel((start + 75, start + 95), launch=(start + 70, start + 73))
    [device] = profile.devices(tmp_path, (0, 200))
    # Per step: 60 in GetNext, 10 of Python, 3 of the launch call, 2 until the kernel starts, and 5
    # of Python after it.
    assert causes_us(device) == {"input": 120, "python": 30, "launch": 10}
    assert main_causes(device) == ["input", "input", "python"]
    assert device.gaps.spans[1].tolist() == [95 * US, 175 * US]


def test_a_device_that_starves_behind_its_launches(tmp_path: Path) -> None:
    profile = CudaProfile()
    profile.steps(0, 100)
    add_events(profile.training, graph_call(0, 100 * US))
    executor = profile.host.line("tf_Compute/1")
    executor.event("ExecutorState::Process", 0, 100 * US, id=3)
    for start in range(0, 100, 20):
        launch = (start + 8, start + 12)
        profile.kernel((start + 13, start + 20), launch=launch, line=executor)
    [device] = profile.devices(tmp_path, (0, 100))
    assert causes_us(device) == {"launch": 65}
    assert device.activity.median_delay_us == 1


def test_a_gap_that_the_window_cuts_ends_with_the_work_behind_it(tmp_path: Path) -> None:
    profile = CudaProfile()
    profile.steps(0, 300)
    profile.kernel((0, 100), launch=(0, 5))
    profile.kernel((400, 450), launch=(10, 15))
    [device] = profile.devices(tmp_path, (0, 300))
    assert causes_us(device) == {"queued": 200}


def test_copies_ahead_on_threads_of_tf_data_hold_nobody_up(tmp_path: Path) -> None:
    profile = CudaProfile()
    profile.steps(0, 1000)
    ahead = profile.host.line("tf_data_prefetch/1")
    ahead.event("MemcpyH2D", 100 * US, 600 * US, correlation_id=99)
    profile.kernel((0, 10))
    profile.kernel((910, 1000), launch=(905, 908))
    [device] = profile.devices(tmp_path, (0, 1000))
    assert causes_us(device) == {"python": 895, "launch": 5}


def test_a_copy_that_computation_does_not_cover_is_exposed(tmp_path: Path) -> None:
    profile = CudaProfile()
    profile.copy((0, 30), 3_000_000)
    profile.kernel((30, 100))
    profile.copy((90, 110), 2_000_000)
    [device] = profile.devices(tmp_path)
    done = device.activity
    assert done.exposed_copy_ms == 0.04
    assert (done.busy_ms, done.idle_ms) == (0.11, 0)
    [copies] = done.copies
    assert (copies.direction, copies.count, copies.bytes) == ("host_to_device", 2, 5_000_000)


def test_a_device_that_waits_for_another(tmp_path: Path) -> None:
    profile = CudaProfile()
    profile.steps(0, 300)
    for number in (0, 1):
        profile.kernel((10, 50 + 150 * number), launch=(0, 2), device=number)
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        profile.kernel((200, 220), launch=(3, 5), device=number, name=name)
    first, second = profile.devices(tmp_path)
    assert causes_us(first) == {"collective": 150}
    assert causes_us(second) == {}
    assert first.activity.collective_ms == 0.02


def _sets() -> st.SearchStrategy[list[tuple[int, int]]]:
    return st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=5)


@given(_sets(), st.lists(_sets(), min_size=7, max_size=7), st.integers(0, 60), st.integers(0, 9))
def test_the_causes_of_a_gap_add_up_to_it(
    idle: list[tuple[int, int]], sets: list[list[tuple[int, int]]], called: int, took: int
) -> None:
    gaps = _normalised(idle)
    names = ("input", "compile", "copy", "sync", "launch", "python")
    spans = [_normalised(chosen) for chosen in sets]
    host = list(zip(names, spans[:6], strict=True))
    some = np.arange(len(gaps)) % 2 == 0
    start = np.where(some, called, gaps[:, 1])
    split = divide_gaps(gaps, host, spans[6], start, start + took * some, some)
    assert (split >= 0).all()
    assert split.sum(axis=1).tolist() == (gaps[:, 1] - gaps[:, 0]).tolist()


def _normalised(spans: list[tuple[int, int]]) -> np.ndarray:
    return normalise(*zip(*spans, strict=True)) if spans else EMPTY


@pytest.mark.parametrize(
    ("call", "causes"),
    [
        # It had returned by the time the device went idle: the work lay there.
        ((80, 90), {"queued": 100}),
        ((90, 100), {"queued": 100}),
        # It began while the device was busy and returned too late: 10 of the call, 90 until the
        # kernel began.
        ((90, 110), {"launch": 100}),
        # It began too late, too: 20 in which the host was elsewhere.
        ((120, 130), {"python": 20, "launch": 80}),
        # It outlasts the gap.
        ((150, 260), {"python": 50, "launch": 50}),
    ],
)
def test_a_call_is_late_by_its_end(
    tmp_path: Path, call: tuple[int, int], causes: dict[str, int]
) -> None:
    profile = CudaProfile()
    profile.steps(0, 300)
    profile.kernel((0, 100), launch=(0, 5))
    profile.kernel((200, 210), launch=call)
    [device] = profile.devices(tmp_path)
    assert causes_us(device) == causes


def until(end: int) -> Intervals:
    return normalise([0], [end])


def causes(host: HostCauses, gap: Intervals, other_devices: Intervals) -> dict[str, int]:
    """Return the causes of a gap that no call ended."""
    end = gap[:, 1]
    [row] = divide_gaps(gap, host, other_devices, end, end, end < 0).tolist()
    return {cause: ns for cause, ns in zip(GAP_CAUSES, row, strict=True) if ns}


def busy_host() -> HostCauses:
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
    return host_causes(events_of(builder), by_class)


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


Spans = list[tuple[int, int]]

spans = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 30)).map(lambda s: (s[0], s[0] + s[1])),
    max_size=25,
)


def events_of(builder: TraceBuilder) -> TraceEvents:
    return parse(memoryview(builder.serialised()), Path("vm.xplane.pb"))


def doing(gaps: Spans, line: Line) -> list[str | None]:
    """Return what the thread did in each gap of a device that nothing launches on."""
    idle = normalise([start for start, _ in gaps], [end for _, end in gaps])
    no = line.start_ns[:0]
    calls = LaunchCalls([], no, no, no, no.astype(np.int32), no < 0)
    return names_of(explain_gaps(idle, [], EMPTY, no, no.astype(np.intp), calls, {}, line))


def names_of(found: DeviceGaps) -> list[str | None]:
    return [None if place < 0 else found.doing_names[place] for place in found.doing_ids.tolist()]


@given(spans, st.lists(st.integers(0, 30), max_size=12))
def test_doing_is_the_shortest_event_that_covers_half(gaps: Spans, steps: list[int]) -> None:
    # Each event lies in the one before.
    ends = [90 - sum(steps[: place + 1]) for place in range(len(steps))]
    events = [(2 * place, end) for place, end in enumerate(ends) if end > 2 * place]
    builder = TraceBuilder()
    written = builder.host().line("python")
    for start, end in events:
        written.event(f"{start} to {end}", start, end)
    written.event("elsewhere", 200, 201)
    [line] = events_of(builder).host_lines
    idle = normalise([start for start, _ in gaps], [end for _, end in gaps]).tolist()
    half = [
        [(e - s, -s, f"{s} to {e}") for s, e in events if 2 * (min(e, b) - max(s, a)) >= b - a]
        for a, b in idle
    ]
    assert doing(gaps, line) == [min(found)[2] if found else None for found in half]


def test_markers_of_steps_say_nothing() -> None:
    builder = TraceBuilder()
    written = builder.host().line("python")
    written.event("pipediag_step", 0, 100, step_num=0).event("ProfilerStep#3", 0, 90)
    [line] = events_of(builder).host_lines
    assert doing([(10, 20)], line) == [None]


def test_where_the_launching_thread_shows_nothing_the_training_thread_does(tmp_path: Path) -> None:
    profile = CudaProfile()
    profile.steps(0, 300)
    profile.did("save", 20, 95)
    other = profile.host.line("tf_Compute/1")
    other.event("model/einsum:Einsum", 120 * US, 190 * US)
    profile.kernel((0, 20), launch=(0, 0))
    profile.kernel((100, 120), launch=(98, 99), line=other)
    profile.kernel((200, 220), launch=(192, 195), line=other)
    [device] = profile.devices(tmp_path)
    assert names_of(device.gaps)[:2] == ["save", "model/einsum:Einsum"]
