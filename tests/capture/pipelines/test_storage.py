"""The remote storage of files, by their names and the types of mounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipediag.capture.pipelines import calls

MOUNTS = r"""/dev/vda / ext4 rw,relatime 0 0
server:/export /data nfs4 rw,relatime 0 0
/dev/vdb /data/local xfs rw 0 0
gcsfuse /my\040bucket fuse.gcsfuse rw 0 0
tmpfs /stacked tmpfs rw 0 0
s3fs /stacked fuse.s3fs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/a.tfrecord", "ext4"),
        ("/data", "nfs4"),
        ("/data/a", "nfs4"),
        ("/database/a", "ext4"),
        ("/data/local/a", "xfs"),
        ("/my bucket/a", "fuse.gcsfuse"),
        ("/stacked/a", "fuse.s3fs"),
    ],
)
def test_the_last_of_the_longest_mount_points_counts(path: str, expected: str) -> None:
    assert calls.mount_type(path, MOUNTS.splitlines()) == expected


def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> str:
    """Let a directory with one file be a mount of that type; return the file."""
    (tmp_path / "mounts").write_text(f"/dev/vda / ext4 rw 0 0\nx {tmp_path} {kind} rw 0 0\n")
    monkeypatch.setattr(calls, "_MOUNTS", str(tmp_path / "mounts"))
    file = tmp_path / "a.bin"
    file.write_bytes(b"a")
    return str(file)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("nfs", "nfs"), ("fuse.s3fs", "fuse.s3fs"), ("fuseblk", None), ("tmpfs", None)],
)
def test_the_type_of_the_mount_tells(
    kind: str, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = mounted(tmp_path, monkeypatch, kind)
    given: list[Any] = [file, file.encode(), np.array([file]), ([file], [1]), f"{tmp_path}/*.b?n"]
    assert [calls.remote_storage_of(one) for one in given] == [expected] * len(given)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("gs://bucket/a*", "gs://"),
        (["s3://bucket/a"], "s3://"),
        ("file:///a", None),
        ("a text, see https://example.org", None),
        ([], None),
        ([1, 2], None),
        (np.zeros((2, 2)), None),
        ("\0", None),
        (None, None),
    ],
)
def test_a_scheme_tells_and_text_does_not(files: Any, expected: str | None) -> None:
    assert calls.remote_storage_of(files) == expected
