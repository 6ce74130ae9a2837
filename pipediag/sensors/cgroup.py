"""Limits of the control group and their effects: CPU quota, memory limit, throttling.

Reads version 2 and version 1, from the process's own group up to the topmost one that is visible,
as a limit on any of them holds for all below.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def cpu_quota(root: Path = ROOT) -> float | None:
    """Return the CPUs that the control groups allow, or None where there is no limit."""
    quotas = (_quota(directory) for directory in _directories("cpu", root))
    return min((one for one in quotas if one is not None), default=None)


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


def throttling(root: Path = ROOT) -> tuple[int, int] | None:
    """Return how many periods the group has had, and in how many the quota stopped it; None if not
    known."""
    for directory in _directories("cpu", root):
        table = _table(directory / "cpu.stat")
        if "nr_throttled" in table:
            return table.get("nr_periods", 0), table["nr_throttled"]
    return None


def oom_kills(root: Path = ROOT) -> int | None:
    """Return how many processes of the own group the kernel has killed for want of memory.

    None where the system does not count them.
    """
    for directory in _directories("memory", root):
        for name in ("memory.events", "memory.oom_control"):
            table = _table(directory / name)
            if "oom_kill" in table:
                return table["oom_kill"]
    return None


def killed_since(before: int | None) -> bool:
    """Return True if `oom_kills` has grown since it was `before`."""
    return (oom_kills() or 0) > (before or 0)


# Version 1 writes "no limit" as the largest page-aligned integer.
_UNLIMITED = 1 << 60


def _quota(directory: Path) -> float | None:
    """Return the quota of one group, of version 2 or else of version 1."""
    quota, _, period = text_of(directory / "cpu.max").partition(" ")
    quota = quota or text_of(directory / "cpu.cfs_quota_us")
    period = period or text_of(directory / "cpu.cfs_period_us")
    # Without a limit, the first is `max`, or -1.
    return int(quota) / int(period) if quota.strip().isdigit() and period else None


def _directories(controller: str, root: Path) -> Iterator[Path]:
    """Yield directories of the process's groups with the controller's files, innermost first."""
    groups = _groups(root)
    for mount_point, mount_root, kind, options in _mounts(root):
        own = "" if kind == "cgroup2" else controller
        path = groups.get(own) if not own or controller in options else None
        if path is None or not kind.startswith("cgroup"):
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
