from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
from pathlib import Path
from pipediag.trace.hosts import give_back_freed_memory, keep_freed_memory

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told so")
def test_freed_memory_is_kept_until_it_is_given_back() -> None:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    kept, left = map(int, said.stdout.split())
    assert kept >= 15
    assert left <= 8
