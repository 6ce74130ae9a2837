from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

from pipediag.capture.recorder import open_journal
from pipediag.session.reading import read_journal

KILLED = """
import os, signal, sys
from pathlib import Path
from pipediag.capture.recorder import open_journal
journal = open_journal(Path(sys.argv[1]))
for step in range(3):
    journal.append(0, 1, 100 + step, 10, 4, 1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_records_are_six_little_endian_integers(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "steps.journal")

    journal.append(loop=1, window=2, start_ns=300, duration_ns=40, wait_ns=5, batches=6)

    content = (tmp_path / "steps.journal").read_bytes()
    assert content[:48] == struct.pack("<6q", 1, 2, 300, 40, 5, 6)
    assert not any(content[48:])


def test_steps_outlive_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "steps.journal"
    checkout = Path(__file__).parents[2]

    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        check=False,
    )

    assert done.returncode == -signal.SIGKILL
    assert read_journal(path).tolist() == [[0, 1, 100 + step, 10, 4, 1] for step in range(3)]


def test_steps_past_the_capacity_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "steps.journal"
    journal = open_journal(path)
    size = path.stat().st_size

    for step in range(size // 48 + 2):
        journal.append(0, 0, step + 1, 1, 0, 1)

    assert path.stat().st_size == size
    assert read_journal(path)[-1].tolist() == [0, 0, size // 48, 1, 0, 1]
