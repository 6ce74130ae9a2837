from __future__ import annotations

import sys

import psutil
import pytest

from benchmarks.turns import take_turns


def start(code: str) -> psutil.Popen:
    return psutil.Popen([sys.executable, "-c", code])


def test_all_run_to_their_end() -> None:
    processes = [start("sum(range(3_000_000))"), start("raise SystemExit(3)")]
    take_turns(processes, timeout_s=60)
    assert [process.returncode for process in processes] == [0, 3]


def test_what_does_not_end_is_killed_with_its_children() -> None:
    child = "import time; time.sleep(600)"
    process = start(f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{child}'])")
    with pytest.raises(TimeoutError, match="1 had not ended after 1 s"):
        take_turns([process], timeout_s=1)
    assert process.poll() is not None
    assert not [p for p in psutil.process_iter(["cmdline"]) if child in (p.info["cmdline"] or [])]
