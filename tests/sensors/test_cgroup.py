from __future__ import annotations

from pathlib import Path

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


def test_group_that_is_not_visible_leaves_the_mounted_one(tmp_path: Path) -> None:
    add_cgroup_v2(tmp_path, "host/only/path", {"cpu.max": "50000 100000\n"})
    assert cgroup.cpu_quota(tmp_path) == 0.5


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


def test_version_1_writes_no_memory_limit_as_a_huge_number(tmp_path: Path) -> None:
    add_cgroup_v1(tmp_path, "", {"memory/memory.limit_in_bytes": "9223372036854771712\n"})
    assert cgroup.memory_limit(tmp_path) is None


def test_throttling_of_both_versions(tmp_path: Path) -> None:
    stat = "nr_periods 200\nnr_throttled 50\n"
    add_cgroup_v2(tmp_path / "two", "", {"cpu.stat": stat})
    assert cgroup.throttling(tmp_path / "two") == cgroup.Throttling(200, 50)
    stat = "nr_periods 10\nnr_throttled 1\n"
    add_cgroup_v1(tmp_path / "one", "", {"cpu/cpu.stat": stat})
    assert cgroup.throttling(tmp_path / "one") == cgroup.Throttling(10, 1)


def test_nothing_is_known_without_control_groups(tmp_path: Path) -> None:
    assert cgroup.cpu_quota(tmp_path) is None
    assert cgroup.memory_limit(tmp_path) is None
    assert cgroup.memory_use(tmp_path) is None
    assert cgroup.throttling(tmp_path) is None
    assert cgroup.out_of_memory(tmp_path) is None
    assert cgroup.shortage_between(None, None) is None


def counted(root: Path, **events: str) -> cgroup.OutOfMemory | None:
    """Of the group `pod/box`; names are those of the files, with `__` for a slash."""
    files = {name.replace("__", "/").replace("_", "."): text for name, text in events.items()}
    add_cgroup_v2(root, "pod/box", files)
    return cgroup.out_of_memory(root)


def events(kills: int, reached: int) -> str:
    return f"max 9\noom {reached}\noom_kill {kills}\n"


def test_a_kill_at_the_limit_of_a_group_above(tmp_path: Path) -> None:
    before = counted(
        tmp_path / "a",
        pod__box__memory_events=events(0, 0),
        pod__memory_events=events(3, 3),
    )
    after = counted(
        tmp_path / "b",
        pod__box__memory_events=events(1, 0),
        pod__memory_events=events(4, 4),
    )
    assert cgroup.shortage_between(before, after) == "group"


def test_a_kill_as_the_machine_ran_out_while_a_neighbour_was_at_its_limit(tmp_path: Path) -> None:
    """The neighbour's limit is counted in the group above, but not as its own."""
    before = counted(
        tmp_path / "a",
        pod__box__memory_events=events(2, 2),
        pod__box__memory_events_local=events(2, 2),
        pod__memory_events=events(3, 3),
        pod__memory_events_local=events(0, 0),
    )
    after = counted(
        tmp_path / "b",
        pod__box__memory_events=events(3, 2),
        pod__box__memory_events_local=events(3, 2),
        pod__memory_events=events(4, 4),
        pod__memory_events_local=events(0, 0),
    )
    assert cgroup.shortage_between(before, after) == "elsewhere"


def test_version_1_tells_of_the_kill_alone(tmp_path: Path) -> None:
    counts = []
    for kills in (1, 2):
        root = tmp_path / str(kills)
        add_cgroup_v1(root, "", {"memory/memory.oom_control": f"under_oom 0\noom_kill {kills}\n"})
        counts.append(cgroup.out_of_memory(root))
    before, after = counts
    assert cgroup.shortage_between(before, after) == "unknown"
    assert cgroup.shortage_between(after, after) is None
