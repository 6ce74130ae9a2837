from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipediag.errors import PipediagError
from pipediag.trace.reader import read
from pipediag.trace.schema import xspace_class
from tests.trace.builder import TraceBuilder


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
    space = xspace_class()()
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
    space = xspace_class()()
    plane = space.planes.add(name=b"/host:CPU")
    plane.event_metadata.add(key=1).value.name = b"kernel\xff"
    plane.lines.add(name=b"l\xfe").events.add(metadata_id=1)
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space.SerializeToString())
    line = read(path).host_lines[0]
    assert (line.name, line.event_name(0)) == ("l\ufffd", "kernel\ufffd")


def test_an_event_without_metadata_has_an_empty_name(tmp_path: Path) -> None:
    space = xspace_class()()
    space.planes.add(name=b"/host:CPU").lines.add().events.add(metadata_id=4)
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(space.SerializeToString())
    assert read(path).host_lines[0].event_name(0) == ""


def test_a_visible_gpu_on_which_nothing_ran_is_no_accelerator(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.plane("/device:GPU:0")
    builder.plane("/device:GPU:1").line("Stream #1(Compute)").event("kernel", 0, 1)
    assert [plane.name for plane in builder.events(tmp_path).accelerators] == ["/device:GPU:1"]


def test_the_newest_run_of_a_log_directory(tmp_path: Path) -> None:
    for run, event in (("2026_01_02_00_00_00", "new"), ("2026_01_01_00_00_00", "old")):
        folder = tmp_path / "logs" / "plugins" / "profile" / run
        folder.mkdir(parents=True)
        builder = TraceBuilder()
        builder.host().line("python").event(event, 0, 1)
        builder.save(folder)
    assert read(tmp_path).host_lines[0].event_name(0) == "new"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"not a profile at all", "not an XPlane profile"),
        (b"\x12\x03abc", "holds no planes"),
    ],
)
def test_bad_files_are_told_in_one_line(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "bad.xplane.pb"
    path.write_bytes(data)
    with pytest.raises(PipediagError, match=said) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_profile_cut_short_is_told(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event("event", 0, 1)
    path = builder.save(tmp_path)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(PipediagError, match="cut short"):
        read(path)


def test_no_profile_there(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match=r"no \*\.xplane\.pb"):
        read(tmp_path)
    with pytest.raises(PipediagError, match="There is no profile at"):
        read(tmp_path / "missing")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = TraceBuilder().save(tmp_path)

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(PipediagError, match="Permission denied"):
        read(path)


@settings(max_examples=60)
@given(st.binary(min_size=1, max_size=80))
def test_any_bytes_give_a_profile_or_a_message(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "x.xplane.pb"
    path.write_bytes(data)
    try:
        planes, message = len(read(path).planes), ""
    except PipediagError as error:
        planes, message = 0, str(error)
    assert planes or str(path) in message
