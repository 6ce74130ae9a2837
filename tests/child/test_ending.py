from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipediag.child.ending import exit_status_of
from pipediag.child.interrupts import interrupts_wait
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


@pytest.fixture
def _heard() -> Iterator[None]:
    """Python's own handler, also where a shell that runs the tests has them ignore Ctrl-C."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("_heard")
def test_an_interrupt_waits_until_what_is_written_is_whole() -> None:
    written = []

    def write() -> None:
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            written.append("whole")

    with pytest.raises(KeyboardInterrupt):
        write()

    assert written == ["whole"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("_heard")
def test_without_an_interrupt_nothing_comes_of_it() -> None:
    with interrupts_wait():
        pass

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


INTERRUPTED_WHILE_IT_SAVES = """
import signal, sys
from pipediag.child.ending import Ending
class Told(list):
    tell = list.append
class Recorder:
    def script_ended(self, *end):
        signal.raise_signal(signal.SIGINT)
        print("saved")
    def let_go(self):
        return False
signal.signal(signal.SIGINT, signal.default_int_handler)
told = Told()
ending = Ending(told)
ending.record_with(Recorder())
try:
    ending.failed(KeyboardInterrupt())
except KeyboardInterrupt:
    print(*(type(message).__name__ for message in told))
"""


def test_a_second_interrupt_comes_once_the_end_is_told() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_IT_SAVES],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout == "saved\nEnded\n"
