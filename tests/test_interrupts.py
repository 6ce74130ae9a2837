"""Ctrl-C in a command's own process, whatever it is doing."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from pipediag.interrupts import GIVE_UP_AT, INTERRUPTED
from tests.probe import environment

TAKES = """
import os, signal, sys
from pipediag.interrupts import INTERRUPTS
INTERRUPTS.take()
def interrupt():
    signal.raise_signal(signal.SIGINT)
"""


def _run(
    code: str, disposition: signal.Handlers, before: str = TAKES
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", before + code],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, disposition),
    )


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    interrupt()\nfinally:\n    print('cleaned up')",
        "import atexit; atexit.register(interrupt)",
        "class Goes:\n    def __del__(self): interrupt()\nGoes()",
    ],
)
def test_a_command_without_a_script_ends_at_once(code: str) -> None:
    done = _run(code, signal.SIG_DFL)

    assert (done.returncode, done.stdout) == (INTERRUPTED, "")
    assert done.stderr == "pipediag: interrupted.\n"


def test_before_the_handler_is_there_it_leaves_no_traceback_either() -> None:
    code = """
import signal
from pipediag import __main__ as command
command.search_own_places_first = lambda: signal.raise_signal(signal.SIGINT)
command.run()
"""
    done = _run(code, signal.SIG_DFL, before="")

    assert (done.returncode, done.stdout) == (INTERRUPTED, "")
    assert done.stderr == "pipediag: interrupted.\n"


@pytest.mark.parametrize("times", [0, 1, GIVE_UP_AT - 1, GIVE_UP_AT, GIVE_UP_AT + 1])
def test_a_command_that_runs_a_script_finishes_unless_it_is_pressed_again(times: int) -> None:
    code = f"INTERRUPTS.finish_first()\nfor _ in range({times}): interrupt()\n"
    done = _run(code + "print(INTERRUPTS.came)", signal.SIG_DFL)

    given_up = times >= GIVE_UP_AT
    assert done.returncode == (INTERRUPTED if given_up else 0)
    assert done.stdout == ("" if given_up else f"{times > 0}\n")
    assert len(done.stderr.splitlines()) == min(times, GIVE_UP_AT)


def test_where_it_is_ignored_it_stays_ignored() -> None:
    done = _run("interrupt(); print(INTERRUPTS.came)", signal.SIG_IGN)

    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_a_fork_says_nothing() -> None:
    code = (
        "pid = os.fork()\nif not pid: interrupt()\nprint(os.waitstatus_to_exitcode(os.wait()[1]))"
    )
    done = _run(code, signal.SIG_DFL)

    assert (done.stdout, done.stderr) == (f"{INTERRUPTED}\n", "")
