"""A small /proc and /sys in a temporary directory."""

from __future__ import annotations

from pathlib import Path


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def stat_line(pid: int, name: str, ticks: int, started: int) -> str:
    """`ticks` of user time; the name may hold what it likes."""
    fields = ["S"] + ["0"] * 10 + [str(ticks), "0"] + ["0"] * 6 + [str(started)] + ["0"] * 10
    return f"{pid} ({name}) {' '.join(fields)}\n"


def add_thread(
    root: Path, pid: int, tid: int, name: str, *, cpu_ns: int = 0, started: int = 0
) -> None:
    task = f"proc/{pid}/task/{tid}"
    write(root, f"{task}/comm", f"{name}\n")
    write(root, f"{task}/stat", stat_line(tid, name, cpu_ns // 10_000_000, started))
    write(root, f"{task}/schedstat", f"{cpu_ns} 0 1\n")
    write(root, f"{task}/children", "")


def add_process(root: Path, pid: int, *, cpu_ns: int = 0, pages: int = 100) -> None:
    write(root, f"proc/{pid}/statm", f"1000 {pages} 10 1 0 1 0\n")
    write(root, f"proc/{pid}/stat", stat_line(pid, "python", cpu_ns // 10_000_000, 1))
    write(root, f"proc/{pid}/io", "rchar: 9\nwchar: 9\nread_bytes: 4096\nwrite_bytes: 0\n")
    add_thread(root, pid, pid, "python", cpu_ns=cpu_ns, started=1)


def add_machine(root: Path) -> None:
    write(root, "proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 5000 kB\nCached: 700 kB\n")
    write(root, "proc/stat", "cpu  100 0 50 800 40 0 10 0 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")


def add_cgroup_v2(root: Path, group: str, files: dict[str, str]) -> None:
    write(root, "proc/self/cgroup", f"0::/{group}\n")
    for path, text in files.items():
        write(root, f"sys/fs/cgroup/{path}", text)
