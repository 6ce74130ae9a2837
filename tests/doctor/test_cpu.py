from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.doctor import cpu
from tests.fake_proc import add_cgroup_v2, write


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "usable_cores", lambda: 4)


@pytest.mark.parametrize(("quota", "state"), [("max", "ok"), ("400000", "ok"), ("250000", "warn")])
def test_quota(tmp_path: Path, quota: str, state: str) -> None:
    add_cgroup_v2(tmp_path, "", {"cpu.max": f"{quota} 100000\n"})
    assert cpu.quota(tmp_path).state == state


def test_quota_is_named(tmp_path: Path) -> None:
    add_cgroup_v2(tmp_path, "", {"cpu.max": "250000 100000\n"})
    assert "4 cores may be used, but the quota is 2.5 CPUs" in cpu.quota(tmp_path).found


@pytest.mark.parametrize(("throttled", "state"), [(0, "ok"), (40, "warn")])
def test_throttling(tmp_path: Path, throttled: int, state: str) -> None:
    stat = f"nr_periods 1000\nnr_throttled {throttled}\nthrottled_usec 5\n"
    add_cgroup_v2(tmp_path, "", {"cpu.stat": stat})
    assert cpu.throttling(tmp_path).state == state


def test_no_throttling_without_a_quota(tmp_path: Path) -> None:
    assert cpu.throttling(tmp_path).found == "No quota has been at work."


@pytest.mark.parametrize(("load", "state"), [(0.5, "ok"), (3.0, "warn")])
def test_load(load: float, state: str) -> None:
    assert cpu.load(load).state == state


@pytest.mark.parametrize(("percent", "state"), [(0.1, "ok"), (4.0, "warn")])
def test_stolen_time(percent: float, state: str) -> None:
    assert cpu.stolen(percent).state == state


@pytest.mark.parametrize(
    ("governor", "driver", "state"),
    [
        ("performance", "acpi-cpufreq", "ok"),
        ("powersave", "intel_pstate", "ok"),
        ("powersave", "acpi-cpufreq", "warn"),
    ],
)
def test_frequency(tmp_path: Path, governor: str, driver: str, state: str) -> None:
    base = "sys/devices/system/cpu"
    write(tmp_path, f"{base}/cpu0/cpufreq/scaling_governor", f"{governor}\n")
    write(tmp_path, f"{base}/cpu0/cpufreq/scaling_driver", f"{driver}\n")
    write(tmp_path, f"{base}/cpufreq/boost", "1\n")
    check = cpu.frequency(tmp_path)
    assert check.state == state
    assert "turbo on" in check.found


def test_frequency_that_is_not_shown(tmp_path: Path) -> None:
    assert cpu.frequency(tmp_path).state == "ok"
