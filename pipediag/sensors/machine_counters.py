"""Counters of the whole machine, or of the control group that stands in for it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pipediag.sensors import cgroup, procfs


class MachineCounters:
    """Memory and disk waits, read through `root`, the place where /proc and /sys are."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._memory_limit = cgroup.memory_limit(root)

    def memory(self) -> tuple[int | None, int | None]:
        """Bytes available to new allocations and bytes of page cache: the group's, if limited."""
        available = cache = None
        with suppress(OSError):
            text = procfs.read(str(self._root / "proc/meminfo"))
            available, cache = (
                procfs.field(text, b"MemAvailable:"),
                procfs.field(text, b"\nCached:"),
            )
        available = None if available is None else available * 1024
        cache = None if cache is None else cache * 1024
        use = None if self._memory_limit is None else cgroup.memory_use(self._root)
        if use is None or self._memory_limit is None:
            return available, cache
        used, group_cache = use
        room = max(0, self._memory_limit - used + group_cache)
        return (room if available is None else min(room, available)), group_cache

    def disk_wait_ticks(self) -> tuple[int | None, int | None]:
        """Ticks in which a CPU waited for the disk, and ticks of all CPUs, idle ones included."""
        with suppress(OSError, ValueError, IndexError):
            machine = procfs.read(str(self._root / "proc/stat")).split(b"\n", 1)[0]
            ticks = [int(field) for field in machine.split()[1:9]]
            return ticks[4], sum(ticks)
        return None, None
