from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.sensors.cpu_ticks import CpuTicks, ticks_of
from tests.fake_proc import write

STAT = (
    "cpu  9 9 9 9 9 9 9 9 9 9\n"
    "cpu1 100 0 50 800 50 0 0 0 70 0\n"
    "cpu10 900 0 0 100 0 0 0 0 0 0\n"
    "cpu11 100 0 0 850 0 10 10 30 0 0\n"
    "intr 1 2 3\n"
)


def test_the_cpus_that_are_asked_for_are_counted_and_their_guests_only_once(tmp_path: Path) -> None:
    write(tmp_path, "proc/stat", STAT)
    found = ticks_of({1, 11}, tmp_path)
    assert found == CpuTicks(2000, 1700)
    assert found.busy == 300


@pytest.mark.parametrize("text", ["", "cpu 1 2 3 4 5 6 7 8\n", "cpu0 0 0 0 0 0 0 0 0\n"])
def test_a_system_that_does_not_tell_is_not_known(tmp_path: Path, text: str) -> None:
    write(tmp_path, "proc/stat", text)
    assert ticks_of({0}, tmp_path) is None
    assert ticks_of({0}, tmp_path / "nothing") is None
