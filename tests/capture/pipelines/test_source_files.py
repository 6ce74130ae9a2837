from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from pipediag.capture.pipelines.calls import MOST_FILES, uncompressed_bytes


def written(folder: Path, name: str, content: bytes) -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def test_plain_files_hold_what_they_take(tmp_path: Path) -> None:
    one, two = written(tmp_path, "a", b"12345"), written(tmp_path, "b", b"678")
    assert uncompressed_bytes([one, two], None) == 8
    assert uncompressed_bytes(one, "") == 5


def test_a_gzip_file_says_what_it_holds(tmp_path: Path) -> None:
    packed = written(tmp_path, "a.gz", gzip.compress(b"a" * 100_000))
    noise = written(tmp_path, "b.gz", gzip.compress(os.urandom(1000)))
    assert uncompressed_bytes((packed, noise), "GZIP") == 101_000


@pytest.mark.parametrize("content", [b"", b"\x01", gzip.compress(os.urandom(5000)) + b"\0" * 4])
def test_what_cannot_be_is_not_believed(tmp_path: Path, content: bytes) -> None:
    assert uncompressed_bytes(written(tmp_path, "a.gz", content), "GZIP") is None


def test_what_sizes_do_not_tell_is_left_out(tmp_path: Path) -> None:
    name = written(tmp_path, "a", b"12345")
    assert uncompressed_bytes(name, "ZLIB") is None
    assert uncompressed_bytes([name] * (MOST_FILES + 1), None) is None
    assert uncompressed_bytes("gs://bucket/a.tfrecord", None) is None
    assert uncompressed_bytes(object(), None) is None
    assert uncompressed_bytes([3.5], None) is None
