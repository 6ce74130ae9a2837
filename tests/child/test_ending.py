from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipediag.child.ending import exit_status_of
from tests.probe import environment


@pytest.mark.parametrize(
    ("code", "status"),
    [(None, 0), (0, 0), (7, 7), (256, 0), (-1, 255), (True, 1), ("text", 1), (1.5, 1), ([], 1)],
)
def test_exit_status_is_the_one_python_would_give(code: object, status: int) -> None:
    assert exit_status_of(SystemExit(code)) == status


LEAVES = """
import ctypes, sys
from pipediag.child.ending import leave_without_finalising
log = open("log.txt", "w")
log.write("in a text file")
raw = open("raw.bin", "wb")
raw.write(b"in a binary file")
closed = open("closed.txt", "w")
closed.close()
sys.stdout.write("on standard output, ")
class Hang:
    def __del__(self):
        print("never shown")
hang = Hang()
sys.stdout.flush()
ctypes.CDLL(None).printf(b"from C")
leave_without_finalising({status})
"""


def _leave(status: int, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LEAVES.format(status=status)],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_leaving_without_finalisation_loses_no_output(tmp_path: Path) -> None:
    done = _leave(5, tmp_path)

    assert (done.stdout, done.returncode) == ("on standard output, from C", 5)
    assert (tmp_path / "log.txt").read_text() == "in a text file"
    assert (tmp_path / "raw.bin").read_bytes() == b"in a binary file"


def test_leaving_by_a_signal(tmp_path: Path) -> None:
    assert _leave(-signal.SIGINT, tmp_path).returncode == -signal.SIGINT


def test_a_full_standard_output_is_told_by_the_status(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "from pipediag.child.ending import leave_without_finalising as leave\n"
                "print('x')\nleave(0)",
            ],
            cwd=tmp_path,
            env={**environment(), "PYTHONUNBUFFERED": ""},
            stdout=full,
            check=False,
        )

    assert done.returncode == 120
