from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace.device.gap_details import GapDetails, gap_details
from pipediag.trace.device.gaps import next_launches
from pipediag.trace.device.launches import NOT_FOUND, LaunchCalls, launch_calls
from pipediag.trace.device.streams import device_events
from pipediag.trace.events import Line, TraceEvents
from pipediag.trace.intervals import normalise
from pipediag.trace.xplane.file import parse
from tests.trace.builder import TraceBuilder
from tests.trace.cuda import US, CudaProfile

Spans = list[tuple[int, int]]

spans = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 30)).map(lambda s: (s[0], s[0] + s[1])),
    max_size=25,
)


def events_of(builder: TraceBuilder) -> TraceEvents:
    return parse(memoryview(builder.serialised()), Path("vm.xplane.pb"))


def details(gaps: Spans, line: Line) -> GapDetails:
    """With no device, so that the line is the training thread of all of them."""
    idle = normalise([start for start, _ in gaps], [end for _, end in gaps])
    calls = LaunchCalls([], *(line.start_ns[:0] for _ in range(5)))  # type: ignore[arg-type]
    nothing = line.start_ns[:0]
    return gap_details(idle, {}, next_launches(idle, None, nothing, calls), calls, line)


def shortest_that_covers_half(gap: list[int], line: Line) -> str | None:
    """The same, event by event."""
    found = None
    for event in range(len(line)):
        start, end = int(line.start_ns[event]), int(line.end_ns[event])
        inside = min(end, gap[1]) - max(start, gap[0])
        if 2 * inside >= gap[1] - gap[0] and (found is None or end - start < found[0]):
            found = end - start, line.event_name(event)
    return None if found is None else found[1]


@given(spans, spans)
def test_doing_is_the_shortest_event_that_covers_half(gaps: Spans, events: Spans) -> None:
    builder = TraceBuilder()
    written = builder.host().line("python")
    for number, (start, end) in enumerate(events):
        written.event(f"event {number}", start, end)
    [line] = events_of(builder).host_lines

    found = details(gaps, line)

    idle = normalise([start for start, _ in gaps], [end for _, end in gaps])
    assert [found.doing(gap) for gap in range(len(idle))] == [
        shortest_that_covers_half(gap, line) for gap in idle.tolist()
    ]


def test_markers_of_steps_say_nothing() -> None:
    builder = TraceBuilder()
    written = builder.host().line("python")
    written.event("pipediag_step", 0, 100, step_num=0).event("ProfilerStep#3", 0, 90)
    [line] = events_of(builder).host_lines

    assert details([(10, 20)], line).doing(0) is None


def test_where_the_launching_thread_shows_nothing_the_training_thread_does(
    tmp_path: Path,
) -> None:
    profile = CudaProfile()
    profile.steps(0, 300)
    profile.did("save", 20, 95)
    other = profile.host.line("tf_Compute/1")
    other.event("model/einsum:Einsum", 120 * US, 190 * US)
    profile.kernel((0, 20), launch=(0, 0))
    profile.kernel((100, 120), launch=(98, 99), line=other)
    profile.kernel((200, 220), launch=(192, 195), line=other)

    [device] = profile.devices(tmp_path)

    found = device.gaps.details
    assert [found.doing(0), found.doing(1)] == ["save", "model/einsum:Einsum"]


def test_every_gap_has_what_the_thread_was_doing(tmp_path: Path) -> None:
    profile = CudaProfile()
    count = 500
    profile.steps(0, count * 100)
    for start in range(0, count * 100, 100):
        profile.kernel((start, start + 20), launch=(start, start + 2))
        profile.did(f"call {start}", start + 20, start + 100)

    [device] = profile.devices(tmp_path)

    assert len(device.gaps) == count - 1
    assert [device.gaps.details.doing(gap) for gap in range(count - 1)] == [
        f"call {gap * 100}" for gap in range(count - 1)
    ]


def test_a_gap_knows_the_launch_that_ended_it() -> None:
    builder = TraceBuilder()
    host = builder.host().line("python")
    host.event("cuLaunchKernel", 0, 5, correlation_id=7)
    host.event("cuLaunchKernel", 40, 45, correlation_id=9)
    stream = builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13)
    stream.event("k", 10, 20, correlation_id=7)
    stream.event("k", 50, 60, correlation_id=9)
    stream.event("k", 80, 90)
    events = events_of(builder)
    device, calls = device_events(events.accelerators[0]), launch_calls(events)
    launched_by = calls.of(device)
    idle = normalise([20, 60], [50, 80])

    found = gap_details(idle, {}, next_launches(idle, device, launched_by, calls), calls, None)

    assert [found.launch(0), found.launch(1)] == [9, None]
    assert launched_by.tolist() == [0, 1, NOT_FOUND]
