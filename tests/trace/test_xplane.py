"""The columns say what protobuf's own parse says, whatever the size of the chunks."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipediag.trace.files import MalformedError
from pipediag.trace.xplane import columns, parse
from tests.trace.xplane_reference import (
    assert_columns_agree,
    integer,
    message,
    planes_by_protobuf,
    planes_by_reader,
    varint,
)

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[3] / "shared" / "traces"
OWN_FILES = sorted(DATA.glob("*.xplane.pb.gz"))
SHARED_NAMES = ("jax-mi300x-attention", "jax-mi300x-conv-legacy", "tf-v100x8-2020")


def _check(data: bytes) -> None:
    expected = planes_by_protobuf(data)
    assert planes_by_reader(data) == expected
    assert sum(len(line.events) for _, lines in expected for line in lines) > 1_000
    assert assert_columns_agree(data) > 1_000


@pytest.mark.parametrize("file", OWN_FILES, ids=lambda file: file.name)
def test_recorded_cpu_profiles(file: Path) -> None:
    _check(gzip.decompress(file.read_bytes()))


@pytest.mark.skipif(
    not SHARED.is_dir(), reason="needs the real accelerator traces in ../shared/traces"
)
@pytest.mark.parametrize("name", SHARED_NAMES)
def test_real_accelerator_profiles(name: str) -> None:
    _check((SHARED / f"{name}.xplane.pb").read_bytes())


REAL = gzip.decompress((DATA / "fit.xplane.pb.gz").read_bytes())


@pytest.mark.parametrize("size", [97, 4_096])
def test_the_size_of_the_chunks_does_not_show(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some events are longer than the smallest."""
    monkeypatch.setattr(columns, "_CHUNK_BYTES", size)
    assert planes_by_reader(REAL) == planes_by_protobuf(REAL)
    assert_columns_agree(REAL)


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
    """MalformedError is the worst."""
    with contextlib.suppress(MalformedError):
        for line in parse(memoryview(data), Path("x.xplane.pb")).lines():
            line.integers("id", np.arange(len(line)))
            line.stats(len(line) - 1) if len(line) else None


DAMAGED = {
    "an event of a gigabyte": message(
        1, message(3, varint(4 << 3 | 2) + varint(2**30) + b"\x08\x01")
    ),
    "a line of many exabytes": message(1, varint(3 << 3 | 2) + varint(2**63)),
    "a plane of two gigabytes": varint(1 << 3 | 2) + varint(2**31 - 1),
    "an event cut in its field": message(1, message(3, message(4, b"\x08"))),
    "a line cut in a tag": message(1, message(3, message(4, integer(1, 2)) + b"\x22")),
    "a group": varint(15 << 3 | 3) + varint(15 << 3 | 4),
    "field zero": b"\x00\x00",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_what_claims_too_much_is_damaged(data: bytes) -> None:
    with pytest.raises(MalformedError):
        parse(memoryview(data), Path("x.xplane.pb"))
