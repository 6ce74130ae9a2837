from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipediag.errors import PipediagError
from pipediag.trace.events import Plane, TraceEvents
from pipediag.trace.files import MalformedError
from pipediag.trace.kineto import parse
from tests.trace.builder import HOST_PID, KinetoBuilder


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
    assert [(line.name, line.id) for line in (first, second)] == [
        ("Stream #7", 7),
        ("Stream #20", 20),
    ]
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


def test_a_name_that_is_not_utf8_costs_one_character() -> None:
    data = KinetoBuilder().kernel("kernel@", 1, 2).text().encode().replace(b"@", b"\xff")
    assert accelerator(parse_text(data)).lines[0].event_name(0) == "kernel\ufffd"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"traceEvents": []}', "no events"),
        ('{"traceEvents": 3}', "array"),
        ('{"other": []}', "traceEvents"),
        ('{"traceEvents": [{"ph": "X"', "truncated"),
        ('{"traceEvents": [{"args": ' + "[" * 200_000, "recursion"),
        (KinetoBuilder().kernel("k", 1, "1e999999999").text(), "claims a time"),
        (KinetoBuilder().kernel("k", 2**70, 1).text(), "claims a time"),
        (KinetoBuilder().raw('{"ph": "M", "name": "process_name", "pid": 7, "args": '
                             '{"name": "/device:GPU:0"}}').text(), "xplane.pb file beside it"),
    ],
    ids=["no events", "no list", "no trace", "cut", "deep", "long", "late", "another's"],
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


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.dictionaries(_fields, _values | _usual), max_size=4), st.booleans())
def test_any_events_give_a_trace_or_a_message(events: list[dict[str, object]], bare: bool) -> None:
    builder = KinetoBuilder()
    for event in events:
        builder.raw(msgspec.json.encode(event).decode())
    try:
        count, message = parse_text(builder.text(bare=bare)).event_count, ""
    except PipediagError as error:
        count, message = 0, str(error)
    assert count <= len(events)
    assert bool(count) != bool(message)
    assert "\n" not in message
