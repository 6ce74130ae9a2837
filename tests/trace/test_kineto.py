"""Kineto traces: how they are read, and what recorded ones say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipediag.errors import PipediagError
from pipediag.measures.profile import describe_devices
from pipediag.rules.devices import INPUT_GAP
from pipediag.rules.rule import Profile
from pipediag.session.findings import Finding
from pipediag.trace.events import Plane, TraceEvents
from pipediag.trace.files import MalformedError, read
from pipediag.trace.intervals import normalise, total, union
from pipediag.trace.kineto import parse
from pipediag.trace.summary import TraceSummary, summarise, summarise_events
from tests.trace.builder import HOST_PID, KinetoBuilder, main_causes


def accelerator(events: TraceEvents) -> Plane:
    [plane] = events.accelerators
    return plane


def parse_text(text: str | bytes) -> TraceEvents:
    data = text.encode() if isinstance(text, str) else text
    return parse(memoryview(data), Path("x.json"))


def test_streams_lie_on_their_device_and_threads_on_the_host(tmp_path: Path) -> None:
    builder = KinetoBuilder().thread_name("main").launch(10, 5).host("aten::mm", 8, 9)
    builder.kernel("gemm", 20, 30).kernel("add", 60, 1, stream=20)
    builder.kernel("Memcpy HtoD (Pinned -> Device)", 70, 2, category="gpu_memcpy", bytes=4096)
    builder.kernel("gemm", 20, 4, device=1)
    events = builder.events(tmp_path)
    assert [plane.name for plane in events.planes] == [
        "/host:CPU",
        "/device:GPU:0",
        "/device:GPU:1",
    ]
    [thread] = events.host_lines
    assert (thread.name, thread.start_ns.tolist()) == ("main", [0, 2_000])
    first, second = events.accelerators[0].lines
    assert [line.name for line in (first, second)] == ["Stream #7", "Stream #20"]
    assert first.start_ns.tolist() == [12_000, 62_000]
    assert first.end_ns.tolist() == [42_000, 64_000]
    assert first.stats(1) == {"correlation_id": 1, "bytes": 4096}
    assert first.integers("bytes", np.arange(2)).tolist() == [0, 4096]


def test_times_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    builder = KinetoBuilder().host("op", "1712195495406752.125", "0.001")
    builder.kernel("k", "1712195495519689.015", "63.813").kernel("k", "1712195495519752.828", "1")
    line = accelerator(builder.events(tmp_path)).lines[0]
    assert line.start_ns.tolist() == [112_936_890, 113_000_703]
    assert line.end_ns.tolist() == [113_000_703, 113_001_703]


def test_what_is_no_activity_is_left_out(tmp_path: Path) -> None:
    builder = KinetoBuilder().kernel("k", 10, 2)
    builder.kernel("ProfilerStep#1", 0, 100, category="gpu_user_annotation")
    builder.kernel("Event Sync", 0, 100, category="cuda_sync")
    builder.event("PyTorch Profiler (0)", 0, 500, cat="Trace", pid="Spans", tid="PyTorch Profiler")
    builder.raw('{"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "ts": 1, "pid": 1, "tid": 2}')
    builder.raw('{"ph": "i", "name": "Record Window End", "ts": 1, "pid": "", "tid": ""}')
    events = builder.events(tmp_path)
    assert [(plane.name, plane.names) for plane in events.planes] == [("/device:GPU:0", ["k"])]


def test_events_without_a_start_are_left_out_and_without_a_length_take_no_time() -> None:
    builder = KinetoBuilder().kernel("negative", 10, -4).kernel("missing", 20, None)
    builder.kernel("no start", None, 4).kernel("endless", 30, '"Infinity"')
    line = accelerator(parse_text(builder.text())).lines[0]
    assert line.start_ns.tolist() == [0, 10_000, 20_000]
    assert line.end_ns.tolist() == line.start_ns.tolist()


def test_processes_may_be_text_and_threads_of_two_processes_are_two() -> None:
    builder = KinetoBuilder()
    for pid in (1, 2, "trainer"):
        builder.host("op", 1, 2, pid=pid, tid=5)
    names = [line.name for line in parse_text(builder.text()).host_lines]
    assert names == ["thread 5 of 1", "thread 5 of 2", "thread 5 of trainer"]


def test_arguments_of_another_type_are_not_there() -> None:
    builder = KinetoBuilder().kernel("k", 1, 2, bytes="4096", correlation=2**70)
    line = accelerator(parse_text(builder.text())).lines[0]
    assert line.stats(0) == {}
    assert line.integers("correlation_id", np.arange(1)).tolist() == [0]


def test_an_event_that_is_not_utf8_is_left_out_and_counted() -> None:
    text = KinetoBuilder().kernel("kernel@", 1, 2).kernel("gemm", 4, 2).text()
    events = parse_text(text.encode().replace(b"@", b"\xff"))
    assert accelerator(events).names == ["gemm"]
    assert events.warnings == ["1 events do not have Kineto's form and were left out."]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"traceEvents": []}', "no events"),
        ('{"other": []}', "traceEvents"),
        ('{"traceEvents": [{"args": ' + "[" * 200_000, "recursion"),
        (KinetoBuilder().kernel("k", 1, "1e999999999").text(), "claims a time"),
        (KinetoBuilder().kernel("k", 2**70, 1).text(), "claims a time"),
        (KinetoBuilder().raw('{"ph": "M", "name": "process_name", "pid": 7, "args": '
                             '{"name": "/device:GPU:0"}}').text(), "xplane.pb file next to it"),
    ],
    ids=["no events", "no trace", "deep", "long", "late", "another's"],
)  # fmt: skip
def test_what_is_no_trace(text: str, said: str) -> None:
    with pytest.raises(MalformedError, match=said) as caught:
        parse_text(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)  # fmt: skip
_fields = st.sampled_from(("ph", "name", "cat", "ts", "dur", "pid", "tid", "args"))
_usual = st.sampled_from(
    ("X", "M", "kernel", "thread_name", 1, 2.5, {"device": 1, "stream": None}, HOST_PID)
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.dictionaries(_fields, _values | _usual), max_size=4))
def test_any_events_give_a_trace_or_a_message(events: list[dict[str, object]]) -> None:
    builder = KinetoBuilder()
    for event in events:
        builder.raw(msgspec.json.encode(event).decode())
    try:
        count, message = parse_text(builder.text()).event_count, ""
    except PipediagError as error:
        count, message = 0, str(error)
    assert count <= len(events)
    assert bool(count) != bool(message)
    assert "\n" not in message


TRACES = Path(__file__).parents[3] / "shared" / "traces"
FETCH = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
OTHER_THREAD = HOST_PID + 1

real = pytest.mark.skipif(
    not TRACES.is_dir(), reason="needs the real accelerator traces in ../shared/traces"
)


def loop(
    starts: Sequence[int], *, fetching_thread: int = HOST_PID, optimizer: bool = True
) -> KinetoBuilder:
    """Steps of 70 us for the batch, 20 us for kernels of which the first begins at 72 us."""
    builder = KinetoBuilder()
    for number, start in enumerate(starts):
        builder.host(FETCH, start, 70, tid=fetching_thread)
        builder.launch(start + 71, 2, correlation=number + 1)
        builder.kernel("volta_sgemm", start + 72, 20, correlation=number + 1)
        if optimizer:
            builder.host("Optimizer.step#SGD.step", start + 93, 5)
    return builder


def causes(events: TraceEvents) -> dict[str, int]:
    [device] = summarise_events(events).devices
    return {cause: ns // 1000 for cause, ns in device.gaps.by_cause().items()}


def test_without_profiler_steps_a_wait_for_the_loader_is_input(tmp_path: Path) -> None:
    summary = summarise_events(loop(range(0, 500, 100)).events(tmp_path))
    [device] = summary.devices
    assert main_causes(device) == ["input"] * 4
    assert device.gaps.by_cause()["input"] == 4 * 70_000
    assert summary.steps.windows[:, 0].tolist() == [93_000, 193_000, 293_000, 393_000]
    assert summary.steps.column("input_wait").tolist() == [70_000] * 4


def test_without_an_optimizer_a_step_begins_where_a_batch_is_asked_for(tmp_path: Path) -> None:
    summary = summarise_events(loop(range(0, 500, 100), optimizer=False).events(tmp_path))
    assert summary.steps.windows.tolist() == [
        [start, start + 100_000] for start in range(0, 400_000, 100_000)
    ]


def test_python_frames_are_python_whatever_their_name(tmp_path: Path) -> None:
    without, builder = loop(range(0, 500, 100)), loop(range(0, 500, 100))
    for start in range(0, 500, 100):
        builder.host("torch/_compile.py(31): inner", start + 93, 7, cat="python_function")
    assert causes(builder.events(tmp_path)) == causes(without.events(tmp_path))


@pytest.mark.parametrize("optimizer", [True, False])
def test_a_thread_that_fetches_for_another_one_does_not_train(
    tmp_path: Path, *, optimizer: bool
) -> None:
    builder = loop(range(0, 500, 100), fetching_thread=OTHER_THREAD, optimizer=optimizer)
    assert "input" not in causes(builder.events(tmp_path))


def input_gaps(summary: TraceSummary) -> list[Finding]:
    assert INPUT_GAP.check_devices is not None
    profile = Profile(describe_devices(summary, None, {}), "pytorch")
    return list(INPUT_GAP.check_devices(profile))


def input_percent_of_idle(summary: TraceSummary) -> float:
    [device] = summary.devices
    return 100 * device.gaps.by_cause().get("input", 0) / (1e6 * device.activity.idle_ms)


@real
def test_a_real_trace_without_profiler_steps() -> None:
    events = read(TRACES / "torch-resnet-2080ti-dataloader.json.gz")
    summary = summarise_events(events)
    [device] = summary.devices
    assert (round(device.activity.span_ms), round(device.activity.busy_ms)) == (14_523, 4_734)
    fetched = [
        place
        for place, name in enumerate(device.gaps.doing_names)
        if name.startswith("enumerate(DataLoader)")
    ]
    waits = np.isin(device.gaps.doing_ids, fetched) & (device.gaps.lengths_ns > 1e8)
    assert waits.sum() == 15
    assert {main_causes(device)[place] for place in np.flatnonzero(waits)} == {"input"}
    assert input_percent_of_idle(summary) == pytest.approx(68.0, abs=0.1)
    assert device.gaps.by_cause().get("unknown", 0) == 0
    assert [found.status for found in input_gaps(summary)] == ["fail"]


@real
def test_the_bound_of_a_real_run_was_nearly_obtained_by_the_fix() -> None:
    """The same training with no worker and with four: nothing else was changed."""
    before, after = (summarise(TRACES / f"torch-resnet50-workers{n}.json.gz") for n in (0, 4))
    assert input_percent_of_idle(before) == pytest.approx(72.2, abs=0.1)
    assert input_percent_of_idle(after) < 2
    [found] = input_gaps(before)
    assert found.speedup_at_most == pytest.approx(1.40, abs=0.005)
    obtained = np.median(before.steps.durations_ns) / np.median(after.steps.durations_ns)
    assert obtained == pytest.approx(1.39, abs=0.005)
    assert input_gaps(after) == []


@real
@pytest.mark.parametrize(
    ("name", "device", "span_ns", "busy_ns"),
    [
        ("control", "/device:GPU:3", 464_594_000, 388_587_000),
        ("ns", "/device:GPU:0", 480_029_179, 472_454_441),
    ],
)
def test_busy_time_of_real_traces(name: str, device: str, span_ns: int, busy_ns: int) -> None:
    """Of the part that HolisticTraceAnalysis 0.5.0 reads, it found the same to its rounding."""
    recorded = read(TRACES / f"torch-kineto-{name}.json.gz")
    [plane] = recorded.accelerators
    busy = union(*(normalise(line.start_ns, line.end_ns) for line in plane.lines))
    assert (plane.name, int(busy[-1, 1] - busy[0, 0]), total(busy)) == (device, span_ns, busy_ns)
    assert recorded.host_lines[0].name.startswith("thread ")
    assert recorded.warnings == []
