"""The columns say what protobuf's own parse says of any bytes, whatever the size of the chunks."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipediag.trace.files import MalformedError
from pipediag.trace.xplane import columns
from pipediag.trace.xplane.fields import varint_at
from pipediag.trace.xplane.file import parse
from tests.trace.xplane.reference import (
    ReferenceLimitError,
    assert_columns_agree,
    planes_by_protobuf,
    planes_by_reader,
)
from tests.trace.xplane.wire import integer, message, profiles, varint

REAL = gzip.decompress((Path(__file__).parents[1] / "data" / "fit.xplane.pb.gz").read_bytes())
chunk_sizes = st.one_of(st.just(columns._CHUNK_BYTES), st.integers(1, 400))


def _with_chunks_of(size: int, data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(columns, "_CHUNK_BYTES", size)
        assert planes_by_reader(data) == planes_by_protobuf(data)
        assert_columns_agree(data)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(profiles, chunk_sizes, st.sampled_from((0, 1, columns._MANY_PIECES)))
def test_any_profile(data: bytes, chunk: int, pieces: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(columns, "_MANY_PIECES", pieces)
        _with_chunks_of(chunk, data)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.integers(0, len(REAL) - 1), st.integers(0, 255)), min_size=1, max_size=4),
    st.one_of(st.none(), st.integers(0, len(REAL) - 1)),
)
def test_a_real_file_with_wrong_bytes(changes: list[tuple[int, int]], cut: int | None) -> None:
    data = bytearray(REAL)
    for place, byte in changes:
        data[place] = byte
    _check_damaged(bytes(data[:cut]))


def _check_damaged(data: bytes) -> None:
    """What protobuf parses is read alike; of what it does not, MalformedError is the worst."""
    try:
        expected = planes_by_protobuf(data)
    except (DecodeError, ReferenceLimitError):
        with contextlib.suppress(MalformedError):
            for line in parse(memoryview(data), Path("x.xplane.pb")).lines():
                line.integers("id", np.arange(len(line)))
                line.stats(len(line) - 1) if len(line) else None
        return
    assert planes_by_reader(data) == expected


def test_events_longer_than_a_chunk() -> None:
    long = message(4, integer(1, 3) + integer(2, 5_000) + message(4, message(5, b"\x22" * 70_000)))
    short = message(4, integer(1, 3) + integer(2, 7_000) + integer(3, 1_000))
    line = message(3, integer(3, 10) + (short * 40 + long) * 3 + short)
    data = message(1, message(2, b"/host:CPU") + line)
    for size in (1, 7, 64, 1_000, 70_100, 1 << 22):
        _with_chunks_of(size, data)


@pytest.mark.parametrize("statistics", [b"", message(4, integer(1, 1) + integer(3, 77))])
@pytest.mark.parametrize("begins", [b"", integer(2, 5_000)])
def test_events_that_do_not_look_like_one_are_not_followed_one_by_one(
    statistics: bytes, begins: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_offset = message(4, integer(1, 3) + integer(3, 1_000) + statistics)
    other = message(4, integer(1, 3) + begins)
    line = message(3, integer(3, 10) + (without_offset + other) * 5_000)
    data = message(1, message(2, b"/host:CPU") + line)
    expected = planes_by_protobuf(data)
    followed = []

    def note(data: memoryview, start: int, end: int) -> tuple[int, int]:
        followed.append(start)
        return varint_at(data, start, end)

    monkeypatch.setattr(columns, "varint_at", note)

    assert planes_by_reader(data) == expected
    # One chunk holds the line's beginning, and another one the rest.
    assert len(followed) <= 2 * (columns._MANY_PIECES + 1)


def test_an_event_with_more_statistics_than_are_looked_at_together() -> None:
    names = message(5, integer(1, 1) + message(2, message(2, b"id")))
    many = b"".join(message(4, integer(1, 1) + integer(4, value)) for value in range(200))
    line = message(3, message(4, integer(1, 3) + integer(2, 5_000) + many) * 2)
    data = message(1, names + line)
    _with_chunks_of(1 << 22, data)
    [line_read] = parse(memoryview(data), Path("x.xplane.pb")).lines()
    assert line_read.integers("id", np.arange(2)).tolist() == [199, 199]


def test_an_unsigned_duration_below_zero_takes_no_time() -> None:
    event = message(4, integer(1, 3) + integer(2, 2**63 - 1) + integer(3, -5))
    longest = message(4, integer(1, 3) + integer(2, 2**63 - 1) + integer(3, 2**63 - 1))
    data = message(1, message(3, integer(3, 1) + event + longest))
    [line] = parse(memoryview(data), Path("x.xplane.pb")).lines()
    start = 1 + 9_223_372_036_854_775
    assert line.start_ns.tolist() == [start, start]
    assert line.end_ns.tolist() == [1 + 18_446_744_073_709_551, start]


def test_a_line_that_begins_after_2116_is_damage() -> None:
    data = message(1, message(3, integer(3, 2**62)))
    with pytest.raises(MalformedError, match="claims to begin"):
        parse(memoryview(data), Path("x.xplane.pb"))


@pytest.mark.parametrize(
    "data",
    [
        message(1, message(3, varint(4 << 3 | 2) + varint(2**30) + b"\x08\x01")),
        message(1, varint(3 << 3 | 2) + varint(2**63)),
        varint(1 << 3 | 2) + varint(2**31 - 1),
        message(1, message(3, message(4, b"\x08"))),
        message(1, message(3, message(4, integer(1, 2)) + b"\x22")),
        varint(15 << 3 | 3) * 200,
        varint(15 << 3 | 3) + varint(14 << 3 | 4),
        b"\x0b" * 3,
        b"\x00\x00",
    ],
    ids=[
        "an event of a gigabyte",
        "a line of many exabytes",
        "a plane of two gigabytes",
        "an event cut in its field",
        "a line cut in a tag",
        "groups in groups",
        "the wrong end of a group",
        "groups without an end",
        "field zero",
    ],
)
def test_what_claims_too_much_is_damaged(data: bytes) -> None:
    with pytest.raises(MalformedError):
        parse(memoryview(data), Path("x.xplane.pb"))


def test_damaged_statistics_show_when_they_are_asked_for() -> None:
    names = message(5, integer(1, 1) + message(2, message(2, b"id")))
    damaged = message(4, b"\x08\x01\x20\xff")
    data = message(1, names + message(3, message(4, integer(1, 3) + integer(2, 9) + damaged)))
    [line] = parse(memoryview(data), Path("x.xplane.pb")).lines()
    assert len(line) == 1
    with pytest.raises(MalformedError):
        line.stats(0)
    with pytest.raises(MalformedError):
        line.integers("id", np.arange(1))
