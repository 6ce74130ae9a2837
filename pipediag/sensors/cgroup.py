"""Limits of the control group and their effects: CPU quota, memory limit, throttling.

Reads version 2 and version 1, from the process's own group up to the topmost one that is visible,
as a limit on any of them holds for all below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path("/")


@dataclass(frozen=True)
class Throttling:
    periods: int
    throttled_periods: int


def cpu_quota(root: Path = ROOT) -> float | None:
    """Return the CPUs that the control groups allow, or None where there is no limit."""
    found = [
        quota
        for directory in _directories("cpu", root)
        for quota in (_quota_v2(directory), _quota_v1(directory))
        if quota is not None
    ]
    return min(found, default=None)


def memory_limit(root: Path = ROOT) -> int | None:
    """Return the bytes that the control groups allow, or None where there is no limit."""
    found = [
        limit
        for directory in _directories("memory", root)
        for name in ("memory.max", "memory.limit_in_bytes")
        if (limit := _integer(directory / name)) is not None and limit < _UNLIMITED
    ]
    return min(found, default=None)


def memory_use(root: Path = ROOT) -> tuple[int, int] | None:
    """Return the bytes in use by the process's own group, and those of them that are page cache."""
    for directory in _directories("memory", root):
        for used_name, cache_name in (
            ("memory.current", "file"),
            ("memory.usage_in_bytes", "total_cache"),
        ):
            used = _integer(directory / used_name)
            if used is not None:
                return used, _table(directory / "memory.stat").get(cache_name, 0)
    return None


def throttling(root: Path = ROOT) -> Throttling | None:
    """Return how often the quota stopped the group since it was made; None if not known."""
    for directory in _directories("cpu", root):
        table = _table(directory / "cpu.stat")
        if "nr_throttled" in table:
            return Throttling(table.get("nr_periods", 0), table["nr_throttled"])
    return None


MemoryShortage = Literal["group", "elsewhere", "unknown"]
"""Whose memory ran out: that of a visible control group, that of none of these, or not known."""


@dataclass(frozen=True)
class OutOfMemory:
    """Counts since the groups were made."""

    kills: int
    """Processes of the own group killed for want of memory, whoever's memory that was."""
    at_limit: int | None
    """How often a group had reached its limit and nothing could be reclaimed; None in version 1."""


def out_of_memory(root: Path = ROOT) -> OutOfMemory | None:
    """Return what the groups have counted so far; None where they do not say.

    The kernel counts a kill in the group of the process that it killed, but a limit that was
    reached in the group whose limit it is, which may be one further up. A neighbour's limit is
    counted further up as well, but not locally there.
    """
    kills: int | None = None
    at_limit: int | None = None
    for directory in _directories("memory", root):
        events = _table(directory / "memory.events")
        kill = events.get("oom_kill", _table(directory / "memory.oom_control").get("oom_kill"))
        kills = kill if kills is None else kills
        reached = _table(directory / "memory.events.local").get("oom", events.get("oom"))
        if reached is not None:
            at_limit = (at_limit or 0) + reached
    return None if kills is None else OutOfMemory(kills, at_limit)


def shortage_between(
    before: OutOfMemory | None, after: OutOfMemory | None
) -> MemoryShortage | None:
    """Return whose memory ran out when a process was killed meanwhile; None where none was."""
    if after is None or after.kills <= (before.kills if before is not None else 0):
        return None
    if after.at_limit is None:
        return "unknown"
    reached_before = (before.at_limit or 0) if before is not None else 0
    return "group" if after.at_limit > reached_before else "elsewhere"


# Version 1 writes "no limit" as the largest page-aligned integer.
_UNLIMITED = 1 << 60


def _quota_v2(directory: Path) -> float | None:
    fields = text_of(directory / "cpu.max").split()
    if len(fields) != 2 or not fields[0].isdigit():
        return None
    return int(fields[0]) / int(fields[1])


def _quota_v1(directory: Path) -> float | None:
    quota = _integer(directory / "cpu.cfs_quota_us")
    period = _integer(directory / "cpu.cfs_period_us")
    return quota / period if quota and period and quota > 0 else None


def _directories(controller: str, root: Path) -> Iterator[Path]:
    """Yield directories of the process's groups with the controller's files, innermost first."""
    groups = _groups(root)
    for mount_point, mount_root, kind, options in _mounts(root):
        if kind == "cgroup2":
            path = groups.get("")
        elif kind == "cgroup" and controller in options:
            path = groups.get(controller)
        else:
            continue
        if path is None:
            continue
        relative = Path(path.removeprefix(mount_root.rstrip("/")).lstrip("/"))
        top = root / mount_point.lstrip("/")
        for inner in (relative, *relative.parents):
            if (top / inner).is_dir():
                yield top / inner


def _groups(root: Path) -> dict[str, str]:
    """Return the process's group by controller; the version 2 group has the empty name."""
    groups = {}
    for line in text_of(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


def _mounts(root: Path) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield mount point, mounted directory, file system and its options of each mount."""
    for line in text_of(root / "proc/self/mountinfo").splitlines():
        place, _, system = line.partition(" - ")
        fields, kind = place.split(), system.split()
        if len(fields) >= 5 and len(kind) >= 3:
            yield fields[4], fields[3], kind[0], kind[2].split(",")


def _table(path: Path) -> dict[str, int]:
    rows = (line.split() for line in text_of(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def _integer(path: Path) -> int | None:
    try:
        return int(text_of(path))
    except ValueError:
        return None


def text_of(path: Path) -> str:
    """Return the text of a file, empty where it can't be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
