from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

TIMES_FOREVER = """
import os, time
with open("pid.part", "w") as file:
    file.write(str(os.getpid()))
os.rename("pid.part", "pid")
time.sleep(600)
"""
RUNS_IT = """
from pathlib import Path
from pipediag.runner import bench_process
from pipediag.session.table_bench import BenchPlan
bench_process.BENCH = Path("bench.py")
bench_process.run_bench(BenchPlan([], 600.0, 10, "results", "."), Path("plan.json"))
"""
LIMIT_S = 60.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_goes_with_the_process_that_started_it(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "bench.py").write_text(TIMES_FOREVER, encoding="utf-8")
    with subprocess.Popen([sys.executable, "-c", RUNS_IT], cwd=tmp_path) as ours:
        until = time.monotonic() + LIMIT_S
        while not (tmp_path / "pid").exists():
            assert time.monotonic() < until
            assert ours.poll() is None
            time.sleep(0.02)
        bench = psutil.Process(int((tmp_path / "pid").read_text()))
        ours.send_signal(number)

    bench.wait(LIMIT_S)
