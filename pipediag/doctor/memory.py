"""Memory: room, swapping, and what the page cache hides."""

from __future__ import annotations

from pathlib import Path

import psutil

from pipediag.doctor.check import Check
from pipediag.sensors import cgroup

ROOT = Path("/")
GIB = 1 << 30

LITTLE_BYTES = 2 * GIB
"""TensorFlow itself takes about half a gibibyte; the rest is for the model and the buffers."""

SWAPPED_BYTES = 1 << 28


def room(root: Path = ROOT) -> Check:
    """How much memory a script may still take."""
    memory = psutil.virtual_memory()
    available, total = memory.available, memory.total
    limit, use = cgroup.memory_limit(root), cgroup.memory_use(root)
    if limit is not None and use is not None and limit < total:
        used, cached = use
        total, available = limit, min(available, max(0, limit - used + cached))
    found = f"{available / GIB:.1f} GiB of {total / GIB:.1f} GiB are available."
    if available >= LITTLE_BYTES:
        return Check("Memory", "ok", found)
    return Check(
        "Memory",
        "warn",
        found,
        "The script may be killed for memory, or read files again that did not stay cached.",
        "End other programs, raise the limit, or measure with smaller shuffle buffers.",
    )


def swap(used_bytes: int | None = None) -> Check:
    """Whether memory has been moved to disk."""
    used = psutil.swap_memory().used if used_bytes is None else used_bytes
    found = f"{used / GIB:.1f} GiB are swapped out." if used else "Nothing is swapped out."
    if used < SWAPPED_BYTES:
        return Check("Swap", "ok", found)
    return Check(
        "Swap",
        "warn",
        found,
        "Memory that is fetched back from disk stalls single steps by milliseconds.",
        "Free memory before measuring, or turn swap off for the time: swapoff -a.",
    )


def page_cache(cached_bytes: int | None = None) -> Check:
    """How much of the files a second run would not read from disk."""
    cached = cached_bytes
    if cached is None:
        cached = getattr(psutil.virtual_memory(), "cached", 0)
    return Check(
        "Page cache",
        "ok",
        f"{cached / GIB:.1f} GiB of files are held in memory.",
        "Files read lately come from memory: a pipeline that reads them looks faster than on its "
        "first epoch, or on data that does not fit.",
    )
