from __future__ import annotations

import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pipediag.errors import PipediagError
from pipediag.reporters.perfetto import write_perfetto
from pipediag.trace.summary import summarise
from tests import factories
from tests.reporters.profiles import US, Export, export, gpu_profile
from tests.trace.builder import TraceBuilder

TRACES = Path(__file__).parents[4] / "shared" / "traces"


def assert_well_formed(written: Export) -> None:
    """The rules of the trace event format, as far as its viewers hold on to them."""
    named: set[tuple[int, int]] = set()
    tracks: dict[tuple[int, int], list[tuple[Fraction, Fraction]]] = defaultdict(list)
    events = json.loads(written.text, parse_float=Fraction)["traceEvents"]
    for event in events:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        if event["ph"] == "M":
            assert_metadata(event, named)
            continue
        assert (event["pid"], 0) in named
        assert event["ts"] >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, int | Fraction) for value in event["args"].values())
            continue
        track = event["pid"], event["tid"]
        assert track in named
        if event["ph"] == "X":
            assert event["dur"] >= 0
            tracks[track].append((event["ts"], event["ts"] + event["dur"]))
        else:
            assert (event["ph"], event["s"]) == ("i", "t")
    for slices in tracks.values():
        assert_nested(slices)


def assert_metadata(event: dict[str, Any], named: set[tuple[int, int]]) -> None:
    """A name comes before the first event of what it names, and once."""
    if event["name"].endswith("_sort_index"):
        assert isinstance(event["args"]["sort_index"], int)
        return
    assert event["name"] in ("process_name", "thread_name")
    assert isinstance(event["args"]["name"], str)
    track = event["pid"], event["tid"] if event["name"] == "thread_name" else 0
    assert track not in named
    named.add(track)


def assert_nested(slices: list[tuple[Fraction, Fraction]]) -> None:
    """In order of start; each within the one around it, or behind it."""
    around: list[Fraction] = []
    last = Fraction(0)
    for start, end in slices:
        assert start >= last
        last = start
        while around and around[-1] <= start:
            around.pop()
        assert not around or end <= around[-1]
        around.append(end)


def test_own_tracks_stand_above_the_devices_and_those_above_the_host(tmp_path: Path) -> None:
    written = export(gpu_profile(), tmp_path, findings=[factories.make_finding()])

    assert_well_formed(written)
    assert list(written.processes.values()) == ["pipediag"]
    # ui.perfetto.dev shows threads by their ids, whose order is that of writing.
    assert list(written.tracks) == sorted(written.tracks)
    assert list(written.tracks.values()) == [
        "Steps",
        "GPU:0 idle",
        "Findings",
        "GPU:0 / Stream #13(Kernel)",
        "python",
        "tf_data_iterator_get_next/1",
    ]
    indexes = {
        event["tid"]: event["args"]["sort_index"]
        for event in written.events
        if event["name"] == "thread_sort_index"
    }
    assert sorted(indexes, key=indexes.__getitem__) == list(written.tracks)


def test_no_thread_is_taken_for_a_main_thread(tmp_path: Path) -> None:
    written = export(gpu_profile(), tmp_path)

    assert not set(written.processes) & set(written.tracks)


def test_the_originals_are_where_the_profile_has_them(tmp_path: Path) -> None:
    written = export(gpu_profile(), tmp_path)

    assert written.spans("GPU:0 / Stream #13(Kernel)") == [
        ("gemm", 20.001, 39.999),
        ("gemm", 120.0, 40.0),
    ]
    assert written.spans("python") == [
        ("pipediag_step", 0.0, 100.0),
        ("cuLaunchKernel", 10.0, 2.0),
        ("pipediag_step", 100.0, 100.0),
    ]
    assert '"ts":20.001,"dur":39.999' in written.text


def test_slices_that_cross_stand_on_tracks_of_their_own(tmp_path: Path) -> None:
    builder = gpu_profile()
    stream = builder.plane("/device:GPU:1").line("Stream #7", 7)
    stream.event("a", 0, 50 * US).event("b", 20 * US, 80 * US).event("c", 20 * US, 30 * US)
    stream.event("d", 60 * US, 60 * US).event("e", 79 * US, 90 * US)

    written = export(builder, tmp_path)

    assert_well_formed(written)
    assert [name for name, _, _ in written.spans("GPU:1 / Stream #7")] == ["a", "c", "d", "e"]
    assert [name for name, _, _ in written.spans("GPU:1 / Stream #7 (2)")] == ["b"]


def test_a_launch_and_its_kernel_share_an_id(tmp_path: Path) -> None:
    written = export(gpu_profile(), tmp_path)

    related = [
        event["name"] for event in written.events if event.get("args") == {"correlation_id": 41}
    ]
    assert sorted(related) == ["cuLaunchKernel", "gemm"]


def test_beyond_the_limit_the_shortest_events_of_the_host_are_left_out(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start in range(6):
        line.event(f"call {start}", start * US, start * US + 100 * (start + 1))
    stream = builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13)
    stream.event("k", 0, 1).event("k", 2, 3).event("k", 4, 5)

    written = export(builder, tmp_path, most_host_events=2)

    assert [name for name, _, _ in written.spans("python")] == ["call 4", "call 5"]
    assert len(written.slices("GPU:0 / Stream #13(Kernel)")) == 3
    assert (written.exported.left_out, written.exported.longest_left_out_us) == (4, 0.4)
    assert written.other["host_events_left_out"] == 4
    assert written.other["longest_event_left_out_us"] == 0.4


def test_within_the_limit_nothing_is_left_out(tmp_path: Path) -> None:
    written = export(gpu_profile(), tmp_path)

    assert written.exported.left_out == 0
    assert "host_events_left_out" not in written.other


def test_derived_lines_are_no_streams(tmp_path: Path) -> None:
    builder = gpu_profile()
    builder.plane("/device:GPU:1").line("Steps", 0xDEADBEEF).event("0", 0, 100)

    assert not [track for track in export(builder, tmp_path).tracks.values() if "GPU:1" in track]


def test_a_profile_that_counts_from_1970_begins_at_its_first_event(tmp_path: Path) -> None:
    builder = TraceBuilder()
    epoch = 1_700_000_000_000_000_000
    stream = builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13, timestamp_ns=epoch)
    stream.event("k", 5, 12).event("k", 30_000, 30_001)

    written = export(builder, tmp_path)

    assert written.spans("GPU:0 / Stream #13(Kernel)") == [("k", 0.0, 0.007), ("k", 29.995, 0.001)]
    assert written.spans("GPU:0 idle")[0][1:] == (0.007, 29.988)
    assert written.other["origin_ns vm"] == epoch + 5


def test_several_hosts_are_told_apart(tmp_path: Path) -> None:
    summaries = []
    for host in ("a", "b"):
        (tmp_path / host).mkdir()
        summaries.append((host, summarise(gpu_profile().save(tmp_path / host))))
    path = tmp_path / "both.json.gz"

    written = Export(path, write_perfetto(path, summaries))

    assert_well_formed(written)
    assert list(written.processes.values()) == ["a", "b"]
    for track in ("Steps", "GPU:0 / Stream #13(Kernel)", "python"):
        assert written.spans(track, "a") == written.spans(track, "b") != []


def test_hosts_recorded_at_one_time_share_a_clock(tmp_path: Path) -> None:
    summaries = []
    for host, later_ns in (("a", 30 * US), ("b", 0)):
        builder = gpu_profile()
        began = 1_700_000_000_000_000_000 + later_ns
        builder.plane("Task Environment").stat("profile_start_time", began)
        summaries.append((host, summarise(builder.save(tmp_path, f"{host}.xplane.pb"))))
    path = tmp_path / "both.json.gz"

    written = Export(path, write_perfetto(path, summaries))

    assert_well_formed(written)
    assert written.spans("Steps", "a")[0][1:] == (30.0, 100.0)
    assert written.spans("Steps", "b")[0][1:] == (0.0, 100.0)
    assert written.spans("GPU:0 / Stream #13(Kernel)", "a")[0][1:] == (50.001, 39.999)


def test_the_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    summary = summarise(gpu_profile().save(tmp_path))
    summary.path.unlink()
    out = tmp_path / "out"

    with pytest.raises(PipediagError):
        write_perfetto(out / "trace.json.gz", [("vm", summary)])

    assert list(out.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    summary = summarise(gpu_profile().save(tmp_path))
    (tmp_path / "file").write_text("")

    with pytest.raises(PipediagError, match="Could not write") as raised:
        write_perfetto(tmp_path / "file" / "trace.json.gz", [("vm", summary)])

    assert "\n" not in str(raised.value)


@pytest.mark.skipif(not TRACES.is_dir(), reason="needs the real traces in ../shared/traces")
@pytest.mark.parametrize("name", ["tf-v100x8-2020.xplane.pb", "torch-kineto-ns.json.gz"])
def test_real_traces_with_every_device_event_and_gap(name: str, tmp_path: Path) -> None:
    summary = summarise(TRACES / name)
    path = tmp_path / "trace.json.gz"

    written = Export(path, write_perfetto(path, [("vm", summary)], most_host_events=500))

    assert_well_formed(written)
    gaps = [e for e in written.events if e["ph"] == "X" and "cause" in e.get("args", {})]
    assert len(gaps) == sum(len(device.gaps) for device in summary.devices) > 0
    assert written.exported.left_out > 0
