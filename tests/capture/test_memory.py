from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.capture.process import free_memory_bytes

MEMINFO = "MemTotal:       8000 kB\nMemFree:        100 kB\nMemAvailable:   3000 kB\n"


def write(directory: Path, limit: str) -> tuple[Path, Path]:
    (directory / "meminfo").write_text(MEMINFO, encoding="ascii")
    (directory / "memory.max").write_text(f"{limit}\n", encoding="ascii")
    (directory / "memory.current").write_text("900000\n", encoding="ascii")
    stat = "anon 500000\ninactive_file 300000\n"
    (directory / "memory.stat").write_text(stat, encoding="ascii")
    return directory / "meminfo", directory


@pytest.mark.parametrize(
    ("limit", "free"),
    [
        ("max", 3000 * 1024),
        # Of the limit, 600,000 are in use for good: files that were only read give way.
        ("1000000", 400_000),
        ("500000", 0),
        ("100000000", 3000 * 1024),
    ],
)
def test_the_tighter_limit_counts(tmp_path: Path, limit: str, free: int) -> None:
    assert free_memory_bytes(*write(tmp_path, limit)) == free


def test_unknown_where_nothing_tells(tmp_path: Path) -> None:
    assert free_memory_bytes(tmp_path / "none", tmp_path / "none") is None
