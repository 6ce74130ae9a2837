"""Signals sent to the parent, to both and from a terminal, and Ctrl-C in a command itself."""

from __future__ import annotations

import fcntl
import os
import pty
import resource
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipediag.interrupts import GIVE_UP_AT, INTERRUPTED
from tests.probe import LIMIT_S, MakeProbe, Probe, environment

COUNTS_SIGNALS = """
    import os, signal, time
    counts = {}
    def count(number, frame):
        name = signal.Signals(number).name
        counts[name] = counts.get(name, 0) + 1
    for number in (1, 2, 3, 10, 12, 14, 15, 18, 28):
        signal.signal(number, count)
    print("ready", os.getpid(), flush=True)
    deadline = time.monotonic() + 60
    while not counts and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.6)
    print("signals:", counts, "the end", flush=True)
"""


@dataclass
class Started:
    process: subprocess.Popen[str]
    script: int
    """The process id of the script."""


@pytest.fixture
def start(make_probe: MakeProbe) -> Iterator[Callable[[], Started]]:
    processes = []

    def started() -> Started:
        probe = make_probe(COUNTS_SIGNALS)
        process = _analysed(probe, stdout=subprocess.PIPE, text=True, start_new_session=True)
        processes.append(process)
        return Started(process, int(process.stdout.readline().split()[1]))

    yield started
    for process in processes:
        process.kill()
        process.communicate()


def _analysed(probe: Probe, **options: Any) -> subprocess.Popen[Any]:
    own = ["analyze", "-q", "--run-to-end", "-o", str(probe.directory / "../out")]
    command = [sys.executable, "-m", "pipediag", *own, *probe.arguments]
    return subprocess.Popen(command, cwd=probe.directory, env=environment(), **options)


@pytest.mark.parametrize(
    ("send", "number"),
    [(os.kill, signal.SIGTERM), (os.kill, signal.SIGUSR1), (os.killpg, signal.SIGINT)],
)
def test_a_signal_to_the_parent_or_its_group_reaches_the_script_once(
    send: Callable[[int, int], None], number: signal.Signals, start: Callable[[], Started]
) -> None:
    running = start()

    send(running.process.pid, number)

    out, _ = running.process.communicate(timeout=LIMIT_S)
    assert out == f"signals: {{'{number.name}': 1}} the end\n"
    assert running.process.returncode == 0


def test_a_script_does_not_outlive_a_parent_that_was_killed(start: Callable[[], Started]) -> None:
    running = start()
    processes = psutil.Process(running.process.pid).children(recursive=True)

    running.process.kill()

    assert running.script in {process.pid for process in processes}
    _, alive = psutil.wait_procs(processes, timeout=LIMIT_S)
    assert alive == []


def test_control_c_on_a_terminal_interrupts_the_script_once(make_probe: MakeProbe) -> None:
    probe = make_probe(COUNTS_SIGNALS)
    controller, terminal = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    streams = dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
    process = _analysed(probe, **streams, preexec_fn=take_terminal)
    os.close(terminal)
    _read_until(controller, b"ready")
    os.write(controller, b"\x03")
    seen = _read_until(controller, b"the end")
    process.wait(LIMIT_S)
    os.close(controller)

    assert b"signals: {'SIGINT': 1} the end" in seen


def _read_until(descriptor: int, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        seen += os.read(descriptor, 1000)
    return seen


def test_an_ignored_interrupt_stays_ignored(make_probe: MakeProbe, tmp_path: Path) -> None:
    """A shell's background job and `nohup` start programs with signals ignored."""
    probe = make_probe("import signal; print(int(signal.getsignal(2)), int(signal.getsignal(1)))")

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = _analysed(probe, stdout=subprocess.PIPE, text=True, preexec_fn=ignore)

    assert process.communicate()[0] == f"{int(signal.SIG_IGN)} {int(signal.SIG_IGN)}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_dies_the_same_way_without_a_core_file(number: int) -> None:
    code = f"from pipediag.runner.signals import die_by; die_by({int(number)})"

    done = subprocess.run([sys.executable, "-c", code], env=environment(), check=False)

    assert done.returncode == -number
    assert resource.getrlimit(resource.RLIMIT_CORE)  # ours is as it was


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
