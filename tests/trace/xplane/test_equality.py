"""The columns say what protobuf's own parse says, for every event of real files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.trace.xplane.reference import (
    assert_columns_agree,
    planes_by_protobuf,
    planes_by_reader,
)

OWN = Path(__file__).parents[1] / "data"
SHARED = Path(__file__).parents[4] / "shared" / "traces"

OWN_FILES = sorted(OWN.glob("*.xplane.pb.gz"))
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
