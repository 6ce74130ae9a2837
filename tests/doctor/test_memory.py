from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pipediag.doctor import memory
from pipediag.doctor.memory import GIB
from tests.fake_proc import add_cgroup_v2


@pytest.fixture(autouse=True)
def sixteen_gib(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = SimpleNamespace(total=16 * GIB, available=8 * GIB)
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: machine)


def test_room_of_the_machine(tmp_path: Path) -> None:
    check = memory.room(tmp_path)
    assert (check.state, check.found) == ("ok", "8.0 GiB of 16.0 GiB are available.")


def test_room_of_a_limited_group(tmp_path: Path) -> None:
    files = {
        "memory.max": f"{4 * GIB}\n",
        "memory.current": f"{3 * GIB}\n",
        "memory.stat": f"file {GIB // 2}\n",
    }
    add_cgroup_v2(tmp_path, "", files)
    check = memory.room(tmp_path)
    assert (check.state, check.found) == ("warn", "1.5 GiB of 4.0 GiB are available.")


@pytest.mark.parametrize(("used", "state"), [(0, "ok"), (GIB, "warn")])
def test_swap(used: int, state: str) -> None:
    assert memory.swap(used).state == state


def test_page_cache_is_told_with_what_follows() -> None:
    check = memory.page_cache(3 * GIB)
    assert check.found.startswith("3.0 GiB")
    assert check.follows
