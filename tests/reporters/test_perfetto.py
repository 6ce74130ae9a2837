"""Traces for Perfetto, of a profile."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pipediag.errors import PipediagError
from pipediag.reporters.perfetto import write_perfetto
from pipediag.trace.summary import summarise
from tests.reporters.devices import US, gpu_profile
from tests.trace.builder import TraceBuilder


class Export:
    """A trace that was written, taken apart again."""

    def __init__(self, builder: TraceBuilder, directory: Path) -> None:
        path = directory / "trace.json.gz"
        write_perfetto(path, [summarise(builder.save(directory))])
        self.text = gzip.decompress(path.read_bytes()).decode()
        content = json.loads(self.text)
        self.other: dict[str, Any] = content["otherData"]
        self.events: list[dict[str, Any]] = content["traceEvents"]
        self._tracks = {
            event["args"]["name"]: event["tid"]
            for event in self.events
            if event["name"] == "thread_name"
        }

    def slices(self, track: str) -> list[dict[str, Any]]:
        tid = self._tracks[track]
        return [event for event in self.events if event["ph"] == "X" and event["tid"] == tid]

    def spans(self, track: str) -> list[tuple[str, float, float]]:
        return [(event["name"], event["ts"], event["dur"]) for event in self.slices(track)]


def assert_well_formed(text: str) -> None:
    """Check the rules of the trace event format that its viewers need."""
    named: set[tuple[int, int]] = set()
    tracks: dict[tuple[int, int], list[tuple[Fraction, Fraction]]] = defaultdict(list)
    for event in json.loads(text, parse_float=Fraction)["traceEvents"]:
        assert isinstance(event["name"], str)
        track = event["pid"], event.get("tid", 0)
        if event["ph"] == "M":
            if not event["name"].endswith("_sort_index"):
                assert event["name"] in ("process_name", "thread_name")
                assert track not in named
                named.add(track)
            continue
        assert (event["pid"], 0) in named
        assert event["ts"] >= 0
        assert track in named
        assert event["ph"] == "X"
        assert event["dur"] >= 0
        tracks[track].append((event["ts"], event["ts"] + event["dur"]))
    for slices in tracks.values():
        assert slices == sorted(slices, key=lambda one: one[0])
        around: list[Fraction] = []
        for start, end in slices:
            while around and around[-1] <= start + Fraction(1, 1000):
                around.pop()
            assert not around or end <= around[-1] + Fraction(1, 1000)
            around.append(end)


def test_slices_that_cross_stand_on_tracks_of_their_own(tmp_path: Path) -> None:
    builder = gpu_profile()
    stream = builder.plane("/device:GPU:1").line("Stream #7", 7)
    stream.event("a", 0, 50 * US).event("b", 20 * US, 80 * US).event("c", 20 * US, 30 * US)
    stream.event("d", 60 * US, 60 * US).event("e", 79 * US, 90 * US)
    written = Export(builder, tmp_path)
    assert_well_formed(written.text)
    assert [name for name, _, _ in written.spans("GPU:1 / Stream #7")] == ["a", "c", "d", "e"]
    assert [name for name, _, _ in written.spans("GPU:1 / Stream #7 (2)")] == ["b"]


def test_a_profile_that_counts_from_1970_begins_at_its_first_event(tmp_path: Path) -> None:
    builder = TraceBuilder()
    epoch = 1_700_000_000_000_000_000
    stream = builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13, timestamp_ns=epoch)
    stream.event("k", 5, 12).event("k", 30_000, 30_001)
    written = Export(builder, tmp_path)
    assert written.spans("GPU:0 / Stream #13(Kernel)") == [("k", 0.0, 0.007), ("k", 29.995, 0.001)]
    assert written.spans("GPU:0 idle")[0][1:] == (0.007, 29.988)
    assert written.other["origin_ns vm"] == epoch + 5


def test_the_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    summary = summarise(gpu_profile().save(tmp_path))
    summary.path.unlink()
    out = tmp_path / "out"
    with pytest.raises(PipediagError):
        write_perfetto(out / "trace.json.gz", [summary])
    assert list(out.iterdir()) == []


def test_every_gap_is_named_by_its_cause_and_says_more(tmp_path: Path) -> None:
    written = Export(gpu_profile(), tmp_path)
    gaps = written.slices("GPU:0 idle")
    assert [(gap["ts"], gap["dur"]) for gap in gaps] == [(0.0, 20.001), (60.0, 60.0), (160.0, 40.0)]
    assert gaps[1]["name"] == "Waiting for input"
    assert gaps[1]["args"]["cause"] == "input"
    assert gaps[1]["args"]["duration_us"] == 60.0
    for gap in gaps:
        causes = {
            key: value
            for key, value in gap["args"].items()
            if key.endswith("_us") and key != "duration_us"
        }
        assert sum(causes.values()) == pytest.approx(gap["dur"])
