"""Whatever is no profile ends with one clear line, without a hang, in bounded memory."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipediag.errors import ExitStatus, PipediagError
from pipediag.trace import compression, file_bytes
from pipediag.trace.reader import read, read_file
from pipediag.trace.xplane import columns, fields
from pipediag.trace.xplane import file as xplane_file
from pipediag.trace.xplane.columns import EventColumns, event_columns
from pipediag.trace.xplane.event_names import EventNames
from tests.trace.builder import TraceBuilder


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"not a profile at all", "is not a profile"),
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


PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")
# A schema version, and a MetaGraphDef with a tag; and a node of a name and an operation.
SAVED_MODEL = bytes.fromhex("080112090a0722057365727665")
GRAPH = bytes.fromhex("0a0a0a01781205436f6e7374")


@pytest.mark.parametrize(
    "data",
    [
        PNG,
        SAVED_MODEL,
        GRAPH,
        b"<!DOCTYPE html><html><body>404</body></html>",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        b'{"cells": [], "nbformat": 4}',
        b"[1, 2, 3]",
        b"\x1f\x8b",
        b"\x1f\x8b" + b"\xff" * 40,
        gzip.compress(b"x" * 5_000)[:-12],
        gzip.compress(b""),
        bytes(100),
        b"\xff" * 100,
        b"\x0a\xff\xff\xff\xff\x07",
        b'{"traceEvents": ' + b"[" * 100_000,
        '{"traceEvents": [{"name": "\u00e9"}]}'.encode("utf-16"),
    ],
    ids=[
        "an image",
        "a SavedModel",
        "a graph",
        "a web page",
        "a pointer of Git LFS",
        "a notebook",
        "numbers",
        "two bytes of gzip",
        "damaged gzip",
        "gzip cut short",
        "nothing packed",
        "zeros",
        "ones",
        "two gigabytes claimed",
        "deep JSON",
        "UTF-16",
    ],
)
def test_other_files_are_told_in_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(data)
    with pytest.raises(PipediagError) as caught:
        read(path)
    said = str(caught.value)
    assert str(path) in said
    assert "\n" not in said
    assert len(said) < len(str(path)) + 300
    assert caught.value.status is ExitStatus.USAGE


def test_a_gzip_bomb_ends_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LARGEST_UNPACKED_BYTES", 1 << 22)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(bytes(1 << 23)))
    with pytest.raises(PipediagError, match="unpacks to more than 4 MiB"):
        read(path)


def test_a_file_larger_than_any_profile_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.xplane.pb"
    with path.open("wb") as stream:
        stream.truncate((1 << 31) + 1)
    with pytest.raises(PipediagError, match=r"2\.1 GB are more"):
        read(path)


def test_more_lines_than_a_profile_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xplane_file, "MOST_LINES", 3)
    builder = TraceBuilder()
    host = builder.host()
    for number in range(4):
        host.line(f"thread {number}")
    with pytest.raises(PipediagError, match="4 lines"):
        read(builder.save(tmp_path))


def test_more_fields_than_a_profile_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fields, "MOST_FIELDS", 100)
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(b"\x08\x00" * 101)
    with pytest.raises(PipediagError, match="more than 100 fields"):
        read(path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.xplane.pb"
    os.mkfifo(path)
    with pytest.raises(PipediagError, match="no regular file"):
        read(path)


def test_a_device_is_refused() -> None:
    with pytest.raises(PipediagError, match="no regular file"):
        read_file(Path("/dev/zero"))


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match="Is a directory"):
        read_file(tmp_path)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = TraceBuilder().save(tmp_path)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
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


def test_a_mapped_file_that_is_cut_short_between_two_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_bytes, "MAPPED_FROM_BYTES", 1)
    monkeypatch.setattr(columns, "_CHUNK_BYTES", 1 << 12)
    builder = TraceBuilder()
    line = builder.host().line("python")
    for start in range(5_000):
        line.event("event", start, start + 1)
    path = builder.save(tmp_path)
    looked: list[int] = []

    def cut_behind(
        data: memoryview, start: int, end: int, names: EventNames
    ) -> Iterator[tuple[EventColumns, int]]:
        for piece, place in event_columns(data, start, end, names):
            os.truncate(path, place)
            looked.append(place)
            yield piece, place

    monkeypatch.setattr(xplane_file, "event_columns", cut_behind)
    with pytest.raises(PipediagError, match="changed while it was read") as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert len(looked) == 1
