"""The remote storage on which the files of a pipeline lie."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

_MOUNTS = "/proc/self/mounts"
_NETWORK = ("nfs", "cifs", "smb", "9p", "ceph", "lustre", "gpfs", "beegfs", "afs", "fuse")
"""Beginnings of types of file systems that fetch what they give from elsewhere."""
_LOCAL = ("fuseblk", "fuse.mergerfs", "fuse.ntfs", "fuse.ntfs-3g", "fusectl", "fuse.overlayfs")
"""Types that begin so too and read a disk of the machine."""


def remote_storage_of(files: Any) -> str | None:
    """Return the remote storage of the first of these files: a scheme such as `gs://`, or the type
    of its mount, such as `nfs4`; None for local files, and for what names no files."""
    name = _first_name(files)
    if name is None:
        return None
    scheme, separator, _ = name.partition("://")
    if separator:
        return f"{scheme}://" if scheme.isalnum() and scheme != "file" else None
    with suppress(OSError, ValueError):
        # A pattern's directory stands for the files that match it.
        first = min((name.find(mark) for mark in "*?[" if mark in name), default=None)
        place = name if first is None else os.path.dirname(name[:first]) or "."  # noqa: PTH120
        if os.path.exists(place):  # noqa: PTH110  (text that is no path may be anything)
            mounts = Path(_MOUNTS).read_text(encoding="utf-8", errors="surrogateescape")
            kind = mount_type(os.path.realpath(place), mounts.splitlines())
            return kind if kind.startswith(_NETWORK) and kind not in _LOCAL else None
    return None


def mount_type(path: str, mounts: Iterable[str]) -> str:
    """Return the file system of an absolute path, by the lines of /proc/self/mounts; the last of
    the longest mount points counts. Empty where none has it."""
    longest, kind = -1, ""
    for line in mounts:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1]
        for escaped in ("\\040", "\\011", "\\012", "\\134"):
            point = point.replace(escaped, chr(int(escaped[1:], 8)))
        point = point.rstrip("/")
        if (path == point or path.startswith(f"{point}/")) and len(point) >= longest:
            longest, kind = len(point), fields[2]
    return kind


def _first_name(files: Any, depth: int = 2) -> str | None:
    """Return the first of some names, which may stand with labels; symbolic ones are not known."""
    if isinstance(files, str | bytes | os.PathLike):
        return os.fsdecode(files)
    array = getattr(getattr(files, "dtype", None), "kind", None) in ("O", "S", "U")
    if depth and (array or isinstance(files, list | tuple)):
        with suppress(TypeError, StopIteration):
            return _first_name(next(iter(files)), depth - 1)
    return None
