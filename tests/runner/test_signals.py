"""Signals sent to the parent alone, to both, and from a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.runner.conftest import MakeProbe
from tests.runner.probe import LIMIT_S, Probe, environment

COUNTS_INTERRUPTS = """
    import signal, time
    count = 0
    def interrupted(number, frame):
        global count
        count += 1
    signal.signal(signal.SIGINT, interrupted)
    print("ready", flush=True)
    deadline = time.monotonic() + 60
    while not count and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(1)
    print("interrupts:", count, "the end", flush=True)
"""


def _command(probe: Probe) -> list[str]:
    options = ["analyze", "-q", "--run-to-end", "-o", str(probe.directory / "../out")]
    return [sys.executable, "-m", "pipediag", *options, *probe.arguments]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_parent_reaches_the_script(
    number: signal.Signals, make_probe: MakeProbe
) -> None:
    text = """
        import signal, sys, time
        def handle(number, frame):
            print("got", number, flush=True)
            sys.exit(11)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, handle)
        print("ready", flush=True)
        time.sleep(60)
    """
    probe = make_probe(text)
    process = subprocess.Popen(
        _command(probe),
        cwd=probe.directory,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"

    process.send_signal(number)

    out, _ = process.communicate(timeout=LIMIT_S)
    assert out == f"got {number.value}\n"
    assert process.returncode == 11


def test_control_c_on_a_terminal_interrupts_the_script_once(make_probe: MakeProbe) -> None:
    probe = make_probe(COUNTS_INTERRUPTS)
    controller, terminal = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        _command(probe),
        cwd=probe.directory,
        env=environment(),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        preexec_fn=take_terminal,  # noqa: PLW1509
    )
    os.close(terminal)
    _read_until(controller, b"ready")
    os.write(controller, b"\x03")
    seen = _read_until(controller, b"the end")
    process.wait(LIMIT_S)
    os.close(controller)

    assert b"interrupts: 1 the end" in seen


def _read_until(descriptor: int, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        seen += os.read(descriptor, 1000)
    return seen


def test_an_ignored_interrupt_stays_ignored(make_probe: MakeProbe, tmp_path: Path) -> None:
    """A shell's background job and `nohup` start programs with signals ignored."""
    probe = make_probe("import signal; print(int(signal.getsignal(2)), int(signal.getsignal(1)))")
    done = subprocess.run(
        _command(probe),
        cwd=probe.directory,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: (
            signal.signal(signal.SIGINT, signal.SIG_IGN),
            signal.signal(signal.SIGHUP, signal.SIG_IGN),
        ),
    )

    assert done.stdout == f"{int(signal.SIG_IGN)} {int(signal.SIG_IGN)}\n"
