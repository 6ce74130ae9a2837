from __future__ import annotations

import io
import json

import numpy as np

from pipediag.reporters.perfetto.writer import TraceWriter, encoded


def test_no_nanosecond_is_lost() -> None:
    stream = io.StringIO()
    writer = TraceWriter(stream)
    track = writer.track(writer.process("p"), "t")
    times = np.array([4_503_599_627_370_001, 4_503_599_627_370_002], np.int64)
    writer.slices(track, times, times + 1, [encoded("a"), encoded("b")])
    writer.finish({})

    assert '"ts":4503599627370.001,"dur":0.001' in stream.getvalue()
    assert '"ts":4503599627370.002,"dur":0.001' in stream.getvalue()


def test_times_count_from_the_origin() -> None:
    stream = io.StringIO()
    writer = TraceWriter(stream)
    writer.origin_ns = -1_500
    track = writer.track(writer.process("p"), "t")
    writer.instant(track, 0, "now", {"left": None, "kept": 1})
    writer.finish({"a": 1})

    content = json.loads(stream.getvalue())
    assert content["traceEvents"][-1]["ts"] == 1.5
    assert content["traceEvents"][-1]["args"] == {"kept": 1}
    assert content["otherData"] == {"a": 1}


def test_any_name_is_json_again() -> None:
    names = ['a"b\\', "</script>", "\u2028\x00", "\ud800"]
    stream = io.StringIO()
    writer = TraceWriter(stream)
    track = writer.track(writer.process(names[0]), names[1])
    times = np.arange(len(names))
    writer.slices(track, times, times, map(encoded, names))
    writer.finish({})

    slices = [event for event in json.loads(stream.getvalue())["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in slices] == names
