"""Memory that this process may still take."""

from __future__ import annotations

from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def free_memory_bytes(meminfo: Path = _MEMINFO, cgroup: Path = _CGROUP) -> int | None:
    """The machine's available memory or what the control group leaves, or None where unknown."""
    known = [b for b in (_available(meminfo), _left_in_group(cgroup)) if b is not None]
    return min(known) if known else None


def _available(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _left_in_group(cgroup: Path) -> int | None:
    try:
        limit = int((cgroup / "memory.max").read_text(encoding="ascii"))
        used = int((cgroup / "memory.current").read_text(encoding="ascii"))
        statistics = (cgroup / "memory.stat").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return None  # no group, or no limit: `max`
    # Files that were read and are not in use give way.
    evictable = int(dict(zip(statistics[::2], statistics[1::2], strict=True))["inactive_file"])
    return max(0, limit - used + evictable)
