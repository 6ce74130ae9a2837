from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipediag.sensors.other_programs import CpuReading, others_percent, read_cpus


def written(root: Path, text: str) -> Path:
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc" / "stat").write_text(text)
    return root


def test_only_the_cpus_that_this_process_may_use_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 11})
    monkeypatch.setattr(os, "sysconf", lambda _: 100)
    text = (
        "cpu  9 9 9 9 9 9 9 9 9 9\n"
        "cpu1 100 0 50 800 50 0 0 0 70 0\n"
        "cpu10 900 0 0 100 0 0 0 0 0 0\n"
        "cpu11 100 0 0 850 0 10 10 30 0 0\n"
        "intr 1 2 3\n"
    )
    found = read_cpus(written(tmp_path, text))
    assert found is not None
    assert (found.whole_s, found.busy_s) == (20.0, 3.0)


@pytest.mark.parametrize("text", ["", "cpu 1 2 3 4 5 6 7 8\n", "cpu0 0 0 0 0 0 0 0 0\n"])
def test_a_system_that_does_not_tell_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert read_cpus(written(tmp_path, text)) is None
    assert read_cpus(tmp_path / "nothing") is None


def test_what_is_not_ours_is_that_of_others() -> None:
    before, after = CpuReading(100.0, 40.0, 30.0), CpuReading(120.0, 56.0, 36.0)
    assert others_percent(before, after) == 50.0


def test_own_work_is_not_that_of_others() -> None:
    """Ticks are rounded: ours may come out as more than all."""
    assert others_percent(CpuReading(0.0, 0.0, 0.0), CpuReading(10.0, 8.0, 8.1)) == 0.0


@pytest.mark.parametrize(
    "readings",
    [(None, CpuReading(1, 1, 1)), (CpuReading(1, 1, 1), None), (CpuReading(1, 1, 1),) * 2],
)
def test_without_two_readings_nothing_is_known(
    readings: tuple[CpuReading | None, CpuReading | None],
) -> None:
    assert others_percent(*readings) is None


BUSY = """
import time
until = time.process_time() + 0.2
while time.process_time() < until:
    pass
print("done", flush=True)
input()
"""


def test_own_time_holds_that_of_children_which_live_and_which_have_ended() -> None:
    before = read_cpus()
    if before is None:
        pytest.skip("the system does not show its CPUs")
    child = subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    alive = read_cpus()
    child.communicate(b"\n")
    ended = read_cpus()
    assert alive is not None
    assert ended is not None
    assert alive.own_s - before.own_s > 0.15
    assert ended.own_s - before.own_s > 0.15
