"""A profile is found and read; all else ends with one clear line, in bounded memory."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipediag.errors import ExitStatus, PipediagError
from pipediag.trace import files
from pipediag.trace.files import find_profiles, read, read_profile
from tests.trace.builder import TraceBuilder

NEW, OLD = "2026_01_02_00_00_00", "2026_01_01_00_00_00"
BOTH = [f"{NEW}/a.xplane.pb", f"{NEW}/b.xplane.pb"]
NOISE = random.Random(7).randbytes(200_000)


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    for run, hosts in ((NEW, "ba"), (OLD, "a")):
        folder = tmp_path / "logs" / "train" / "plugins" / "profile" / run
        folder.mkdir(parents=True)
        for host in hosts:
            (folder / f"{host}.xplane.pb").touch()
        (folder / "a.trace.json.gz").touch()
    return tmp_path / "logs"


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (".", BOTH),
        ("train", BOTH),
        (f"train/plugins/profile/{NEW}", BOTH),
        (f"train/plugins/profile/{OLD}", [f"{OLD}/a.xplane.pb"]),
    ],
)
def test_the_newest_run_from_anywhere_above_it(
    log_directory: Path, inside: str, expected: list[str]
) -> None:
    found, _ = find_profiles(log_directory / inside)
    assert [f"{file.parent.name}/{file.name}" for file in found] == expected


def test_a_run_that_the_user_named_is_as_new_as_its_files(tmp_path: Path) -> None:
    for age_s, run in enumerate(("resnet18_4workers", "resnet18_batchsize32")):
        file = tmp_path / run / "worker.1700000000000.pt.trace.json"
        file.parent.mkdir()
        file.touch()
        os.utime(file, (1e9 - age_s, 1e9 - age_s))
    assert [file.parent.name for file in find_profiles(tmp_path)[0]] == ["resnet18_4workers"]


def test_the_newest_window_of_each_worker(tmp_path: Path) -> None:
    for name in ("a_1.1700000000500", "a_1.1700000001000", "b_2.1700000000000"):
        (tmp_path / f"{name}.pt.trace.json").touch()
    (tmp_path / "a_1.1700000002000.pt.trace.json.gz").touch()
    found, of_others = find_profiles(tmp_path)
    assert [file.name for file in found] == [
        "a_1.1700000002000.pt.trace.json.gz",
        "b_2.1700000000000.pt.trace.json",
    ]
    assert of_others == {}


@pytest.mark.parametrize("older", ["1700000000000", "1700000000000000000"])
def test_a_worker_that_wrote_long_before_is_of_another_run(tmp_path: Path, older: str) -> None:
    newest = "1700000600000000000"
    near = "host_8.1700000540000"
    for name in (f"host_17.{older}", f"host_9.{newest}", near, "chosen"):
        (tmp_path / f"{name}.pt.trace.json").touch()
    found, of_others = find_profiles(tmp_path)
    # One whose name has no time may be of any run.
    names = [f"{name}.pt.trace.json" for name in ("chosen", near, f"host_9.{newest}")]
    assert [file.name for file in found] == names
    assert of_others == {tmp_path / f"host_17.{older}.pt.trace.json": 600.0}


@pytest.mark.parametrize("name", ["missing", "loop", "x" * 5_000])
def test_nothing_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(PipediagError, match=r"There is no profile at|Cannot look for profiles at"):
        find_profiles(tmp_path / name)


def test_a_packed_profile_is_the_profile_whatever_its_name(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event("event", 0, 1)
    path = tmp_path / "trace.txt"
    path.write_bytes(gzip.compress(builder.serialised()))
    profile = read_profile(path)
    assert (profile.format, profile.event_count) == ("xplane", 1)
    assert read(path).event_count == 1


# Without the time of day, which would be in the names of the tests.
PACKED = gzip.compress(NOISE, mtime=0)
PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")
# A schema version, and a MetaGraphDef with a tag; and a node of a name and an operation.
SAVED_MODEL = bytes.fromhex("080112090a0722057365727665")
GRAPH = bytes.fromhex("0a0a0a01781205436f6e7374")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "is empty"),
        (b"not a profile at all", "is not a profile"),
        (b"\x12\x03abc", "holds no planes"),
        (PNG, "is not a profile"),
        (SAVED_MODEL, "is not a profile"),
        (GRAPH, "no plane of a host or a device"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "is not a profile"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", "is not a profile"),
        (b'{"cells": [], "nbformat": 4}', "is not a profile"),
        (b"[1, 2, 3]", "is not a profile"),
        (b"\x1f\x8b", "cut short"),
        (b"\x1f\x8b" + b"\xff" * 40, "damaged"),
        (PACKED[:-12], "cut short"),
        (PACKED[:50_000] + bytes(9) + PACKED[50_009:], "damaged"),
        (gzip.compress(b"content", mtime=0) + bytes(9) + b"more", "damaged"),
        (gzip.compress(b"", mtime=0), "is not a profile"),
        (bytes(100), "is not a profile"),
        (b"\x0a\xff\xff\xff\xff\x07", "is not a profile"),
        (b'{"traceEvents": ' + b"[" * 100_000, "is not a profile"),
        ('{"traceEvents": [{"name": "\u00e9"}]}'.encode("utf-16"), "is not a profile"),
    ],
    ids=lambda value: value[:12] if isinstance(value, bytes) else None,
)
def test_other_files_are_an_error_of_one_line(tmp_path: Path, data: bytes, expected: str) -> None:
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(data)
    with pytest.raises(PipediagError, match=expected) as caught:
        read(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < len(str(path)) + 300
    assert caught.value.status is ExitStatus.USAGE


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


def test_what_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "huge.xplane.pb"
    with path.open("wb") as stream:
        stream.truncate((1 << 31) + 1)
    with pytest.raises(PipediagError, match=r"2\.1 GB is more"):
        read(path)
    monkeypatch.setattr(files, "LARGEST_UNPACKED_BYTES", 1 << 22)
    path.write_bytes(gzip.compress(bytes(1 << 23)))
    with pytest.raises(PipediagError, match="unpacks to more than 4 MiB"):
        read(path)


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(PipediagError, match="not a regular file"):
            read_profile(path)
