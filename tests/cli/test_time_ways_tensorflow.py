"""Ways out of a small table, timed after a real run; what the times are decides nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.memory_plan import SCRIPT

pytestmark = pytest.mark.tensorflow

RUN = {"bfloat16", "row-wise update", "sgd", "hashing", "quotient-remainder"}
LOOKED_UP = {"8-bit rows", "memory-mapped and frozen"}
ELSEWHERE = {"sharding", "host with hot rows on the device"}


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    options = ["--time-ways", "60", "--link", "1GB/s", "--json"]
    script = [str(SCRIPT), "100000", "adam", "20000x16"]
    done = subprocess.run(
        [sys.executable, "-m", "pipediag", "plan-memory", *options, *script],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert "timing the largest tables" in done.stderr
    (found,) = json.loads(done.stdout)["tables"]
    return dict(found)


def test_each_way_that_can_be_run_has_a_ratio_with_its_interval(table: dict[str, Any]) -> None:
    times = table["times"]
    assert times, table["times_missing"]
    ways = {way["way"]: way for way in times["ways"]}

    assert set(ways) == RUN | LOOKED_UP | ELSEWHERE
    for name in RUN | LOOKED_UP:
        way = ways[name]
        assert way["missing"] is None, name
        assert way["timed"] == ("step" if name in RUN else "look-up")
        assert 0 < way["ci95"][0] <= way["speedup"] <= way["ci95"][1]
        assert way["rounds"] >= 3
    assert all(ways[name]["missing"] for name in ELSEWHERE)
    assert times["timed_rows"] == 20_000
    assert times["batches"] > 0


def test_what_can_t_be_run_has_bytes_and_the_least_time_on_the_link(table: dict[str, Any]) -> None:
    ways = {way["name"]: way for way in table["ways"]}

    for name in ELSEWHERE:
        exchanged = ways[name]["exchanged_bytes_per_step"]
        assert exchanged > 0
        assert ways[name]["link_ms"] == pytest.approx(exchanged / 1e6)
