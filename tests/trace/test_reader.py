from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from pipediag.trace import file_bytes
from pipediag.trace.reader import read, read_file, read_profile
from pipediag.trace.xplane.schema import message_class
from tests.trace.builder import TraceBuilder
from tests.trace.kineto.builder import KinetoBuilder

SINCE = 1_700_000_000_000_000_000


def test_columns_are_absolute_nanoseconds_sorted_by_start(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python", timestamp_ns=1_000)
    line.event("later", 50, 60)
    line.event("inner", 10, 20)
    line.event("outer", 10, 40)
    read_line = builder.events(tmp_path).host_lines[0]
    assert read_line.start_ns.tolist() == [1_010, 1_010, 1_050]
    assert read_line.end_ns.tolist() == [1_040, 1_020, 1_060]
    assert [read_line.event_name(i) for i in range(3)] == ["outer", "inner", "later"]


def test_both_ends_round_down_to_a_nanosecond(tmp_path: Path) -> None:
    space = message_class("XSpace")()
    line = space.planes.add(name=b"/host:CPU").lines.add(timestamp_ns=7)
    line.events.add(metadata_id=1, offset_ps=1_900, duration_ps=1_200)
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space.SerializeToString())
    read_line = read(path).host_lines[0]
    assert (int(read_line.start_ns[0]), int(read_line.end_ns[0])) == (8, 10)


def test_statistics_of_every_kind(tmp_path: Path) -> None:
    builder = TraceBuilder()
    plane = builder.host()
    plane.line("python").event("e", 0, 1, id=-5, name="fused(a,b)", ratio=0.5, zero=0)
    plane.metadata_stat("e", "hlo_op", "fusion.1")
    plane.metadata_stat("e", "zero", 9)
    assert builder.events(tmp_path).host_lines[0].stats(0) == {
        "id": -5,
        "name": "fused(a,b)",
        "ratio": 0.5,
        "zero": 0,
        "hlo_op": "fusion.1",
    }


def test_a_name_that_is_not_utf8_costs_one_character(tmp_path: Path) -> None:
    space = message_class("XSpace")()
    plane = space.planes.add(name=b"/host:CPU")
    plane.event_metadata.add(key=1).value.name = b"kernel\xff"
    plane.lines.add(name=b"l\xfe").events.add(metadata_id=1)
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space.SerializeToString())
    line = read(path).host_lines[0]
    assert (line.name, line.event_name(0)) == ("l\ufffd", "kernel\ufffd")


def test_an_event_without_metadata_has_an_empty_name(tmp_path: Path) -> None:
    space = message_class("XSpace")()
    space.planes.add(name=b"/host:CPU").lines.add().events.add(metadata_id=4)
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space.SerializeToString())
    assert read(path).host_lines[0].event_name(0) == ""


def test_a_visible_gpu_on_which_nothing_ran_is_no_accelerator(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.plane("/device:GPU:0")
    builder.plane("/device:GPU:1").line("Stream #1(Compute)").event("kernel", 0, 1)
    assert [plane.name for plane in builder.events(tmp_path).accelerators] == ["/device:GPU:1"]


def test_a_packed_profile_is_the_profile(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event("event", 0, 1)
    path = tmp_path / "vm.xplane.pb.gz"
    path.write_bytes(gzip.compress(builder.save(tmp_path).read_bytes()))
    profile = read_profile(path)
    assert (profile.format, profile.events.event_count) == ("xplane", 1)


def test_json_is_a_kineto_trace_whatever_its_name(tmp_path: Path) -> None:
    path = KinetoBuilder().kernel("k", 1, 2).save(tmp_path, "trace.xplane.pb")
    assert read_profile(path).format == "kineto"


@pytest.mark.parametrize(
    ("started", "line_ns", "epoch_ns"),
    [(SINCE + 5, 7, SINCE + 5), (None, SINCE, 0), (None, 7, None), (12, 7, None)],
)
def test_when_time_0_was_is_what_the_profile_says(
    started: int | None, line_ns: int, epoch_ns: int | None, tmp_path: Path
) -> None:
    builder = TraceBuilder()
    builder.host().line("python", timestamp_ns=line_ns).event("event", 0, 1)
    if started is not None:
        builder.plane("Task Environment").stat("profile_start_time", started)
    assert builder.events(tmp_path).epoch_ns == epoch_ns


@pytest.mark.parametrize(
    ("ts", "said", "epoch_ns"),
    [
        ("1712195495519689.015", {}, 1_712_195_495_519_689_015),
        ("250.5", {"baseTimeNanoseconds": SINCE}, SINCE + 250_500),
        ("250.5", {}, None),
        ("250.5", {"baseTimeNanoseconds": "no number"}, None),
    ],
)
def test_when_the_first_event_was_is_what_the_trace_says(
    ts: str, said: dict[str, object], epoch_ns: int | None, tmp_path: Path
) -> None:
    events = KinetoBuilder().kernel("k", ts, 2).events(tmp_path, **said)
    assert (events.first_ns, events.epoch_ns) == (0, epoch_ns)


def test_a_mapped_file_is_read_like_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start in range(3_000):
        line.event("event", start, start + 1, id=start)
    path = builder.save(tmp_path)
    small = read_file(path).host_lines[0]
    monkeypatch.setattr(file_bytes, "MAPPED_FROM_BYTES", 5_000)
    mapped = read_file(path).host_lines[0]
    assert mapped.start_ns.tolist() == small.start_ns.tolist() == list(range(3_000))
    # Statistics are looked at after their pages were given back.
    assert mapped.integers("id", np.arange(3_000)).tolist() == list(range(3_000))


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_text_survives_that_its_file_is_cut_short(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_bytes, "MAPPED_FROM_BYTES", 1)
    text = KinetoBuilder().kernel("k", 1, 2).save(tmp_path, "k.json").read_bytes()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    data, _ = file_bytes.file_bytes(path)
    path.write_bytes(b"")
    assert bytes(data) == text


def test_a_profile_may_be_replaced_while_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_bytes, "MAPPED_FROM_BYTES", 1)
    builder = TraceBuilder()
    builder.host().line("python").event("event", 0, 1, id=5)
    path = builder.save(tmp_path)
    line = read_file(path).host_lines[0]
    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "new").replace(path)
    assert line.stats(0) == {"id": 5}
    path.unlink()
    assert line.stats(0) == {"id": 5}
