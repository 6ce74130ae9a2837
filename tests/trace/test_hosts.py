from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipediag.trace import summary
from pipediag.trace.summary import HostSummary, ProfileReading
from tests.trace.builder import TraceBuilder, add_steps

US = 1_000


def summarise_hosts(paths: Sequence[Path], processes: int | None = None) -> list[HostSummary]:
    with ProfileReading(paths, processes=processes) as reading:
        return reading.summaries()


# A forked reader has what a test puts in its place, too: this one stays what it is.
_summary = summary._summary


def profile(directory: Path, host: str, busy_us: int) -> Path:
    builder = TraceBuilder()
    add_steps(builder.host().line("python"), 0, 100 * US, 200 * US)
    stream = builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13)
    stream.event("gemm", 0, busy_us * US).event("gemm", 150 * US, 160 * US)
    return builder.save(directory, f"{host}.xplane.pb")


def busy_us(host: HostSummary) -> int:
    assert host.summary is not None
    return host.summary.devices[0].busy_ns // US


def test_files_of_one_name_bear_their_directories(tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        paths.append(profile(tmp_path / name, "vm", 20))
    assert [host.host for host in summarise_hosts(paths)] == ["one/vm", "two/vm"]


def test_a_bad_file_costs_its_own_summary_alone(tmp_path: Path) -> None:
    good = profile(tmp_path, "good", 20)
    bad = tmp_path / "bad.xplane.pb"
    bad.write_bytes(good.read_bytes()[:-3])
    missing = tmp_path / "missing.pt.trace.json.gz"
    found = summarise_hosts([bad, good, missing])
    assert [host.summary is None for host in found] == [True, False, True]
    assert "cut short" in str(found[0].reason)
    assert "No such file" in str(found[2].reason)
    assert (found[2].host, found[2].format) == ("missing", "kineto")
    assert found[1].reason is None


def _killed_by_one(path: Path, gap_floor_ns: int) -> HostSummary:
    if path.name.startswith("huge"):
        os.kill(os.getpid(), signal.SIGKILL)
    return HostSummary(path, path.name, "xplane", reason="read")


def test_a_killed_process_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "_summary", _killed_by_one)
    found = summarise_hosts([tmp_path / name for name in ("a", "huge", "b")], processes=2)
    assert all(host.reason for host in found)
    assert "was killed" in str(found[1].reason)


PROGRAM = """
import numpy as np
from pathlib import Path
from pipediag.trace.summary import give_back_freed_memory, keep_freed_memory

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

keep_freed_memory()
before = resident_mb()
columns = [np.ones(1 << 17) for _ in range(24)]
del columns
kept = resident_mb() - before
give_back_freed_memory()
print(kept, resident_mb() - before)
"""
