from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipediag.sensors import cgroup
from tests.fake_proc import add_cgroup_v1, add_cgroup_v2, write


def test_quota_of_version_2_is_the_lowest_on_the_way_up(tmp_path: Path) -> None:
    files = {
        "pod/box/cpu.max": "400000 100000\n",
        "pod/cpu.max": "150000 100000\n",
        "cpu.max": "max 100000\n",
    }
    add_cgroup_v2(tmp_path, "pod/box", files)
    assert cgroup.cpu_quota(tmp_path) == 1.5


def test_quota_of_version_1(tmp_path: Path) -> None:
    files = {"cpu/box/cpu.cfs_quota_us": "250000\n", "cpu/box/cpu.cfs_period_us": "100000\n"}
    add_cgroup_v1(tmp_path, "box", {**files, "cpu/cpu.cfs_quota_us": "-1\n"})
    assert cgroup.cpu_quota(tmp_path) == 2.5


def test_mounted_subdirectory_is_taken_off_the_path(tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/docker/abc/inner\n")
    write(
        tmp_path,
        "proc/self/mountinfo",
        "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    )
    write(tmp_path, "sys/fs/cgroup/inner/cpu.max", "300000 100000\n")
    assert cgroup.cpu_quota(tmp_path) == 3


def test_memory_limit_and_use(tmp_path: Path) -> None:
    files = {
        "box/memory.max": "1000000\n",
        "memory.max": "max\n",
        "box/memory.current": "600000\n",
        "box/memory.stat": "anon 400000\nfile 200000\n",
    }
    add_cgroup_v2(tmp_path, "box", files)
    assert cgroup.memory_limit(tmp_path) == 1_000_000
    assert cgroup.memory_use(tmp_path) == (600_000, 200_000)


def test_nothing_is_known_without_control_groups(tmp_path: Path) -> None:
    assert cgroup.cpu_quota(tmp_path) is None
    assert cgroup.memory_limit(tmp_path) is None
    assert cgroup.memory_use(tmp_path) is None
    assert cgroup.throttling(tmp_path) is None
    assert cgroup.oom_kills(tmp_path) is None


@pytest.mark.parametrize(
    ("add", "file"),
    [(add_cgroup_v2, "memory.events"), (add_cgroup_v1, "memory/memory.oom_control")],
)
def test_kills_for_want_of_memory_are_counted(
    tmp_path: Path, add: Callable[..., None], file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path, "", {file: "oom 2\noom_kill 3\n"})
    assert cgroup.oom_kills(tmp_path) == 3
    monkeypatch.setattr(cgroup, "oom_kills", lambda: 3)
    assert [cgroup.killed_since(before) for before in (None, 2, 3)] == [True, True, False]
