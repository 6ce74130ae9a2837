"""What a script and its reader see of the process between them; nothing here starts TensorFlow."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pipediag.runner.framework_log import passage
from pipediag.runner.framework_log.kept import FRAMEWORK_LOG
from tests.probe import LIMIT_S, environment

NOISE = "I0000 00:00:1795433364.718086   31060 port.cc:153] oneDNN custom operations are on."
LOGS = f"""
import contextlib, os, sys, time
noise = {NOISE!r}
with contextlib.suppress(OSError):
    os.write(2, noise.encode() + b"\\n")
"""

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    processes = []

    def started(script: str, **given: Any) -> subprocess.Popen[bytes]:
        (tmp_path / "script.py").write_text(LOGS + dedent(script))
        variables = given.pop("variables", {})
        command = [sys.executable, "-m", "tests.runner.framework_log.driver"]
        given = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, **given}
        process = subprocess.Popen(
            [*command, str(tmp_path), str(tmp_path / "script.py")],
            env={**environment(), **variables},
            stdout=subprocess.PIPE,
            start_new_session=True,
            **given,
        )
        processes.append(process)
        return process

    yield started
    for process in processes:
        process.kill()
        process.wait()
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            stream.close()


def _told(out: bytes) -> Any:
    return json.loads(out.splitlines()[-1])


def test_only_what_is_folded_is_missing_and_is_kept(start: Start, tmp_path: Path) -> None:
    out, err = start("print('mine', file=sys.stderr); sys.exit(7)").communicate(timeout=LIMIT_S)

    assert err == b"mine\n"
    assert _told(out) == [1, [NOISE], 7]
    assert (tmp_path / FRAMEWORK_LOG).read_text() == f"{NOISE}\n"


def test_each_byte_passes(start: Start) -> None:
    script = "os.write(2, bytes(range(256)) * 2000 + b'\\n' * 5000 + b'x' * 100_000)"

    _, err = start(script).communicate(timeout=LIMIT_S)

    assert err == bytes(range(256)) * 2000 + b"\n" * 5000 + b"x" * 100_000


@pytest.mark.parametrize("prompt", ["Continue? ", "I", NOISE[:40]])
def test_a_prompt_is_seen_before_it_is_answered(prompt: str, start: Start) -> None:
    process = start(f"os.write(2, {prompt.encode()!r}); sys.stdin.readline()")
    assert process.stderr is not None

    assert _read(process.stderr.fileno(), len(prompt)) == prompt.encode()

    process.communicate(b"yes\n", timeout=LIMIT_S)
    assert process.returncode == 0


LEAVES_A_DAEMON = """
    import subprocess
    code = f"import os, sys; sys.stdin.read(); os.write(2, {noise!r}.encode() + b'\\\\nlate\\\\n')"
    subprocess.Popen([sys.executable, "-c", code + "; os.write(3, b'written')"], pass_fds=[3])
"""


def test_a_daemon_writes_on_when_all_else_is_over(start: Start, tmp_path: Path) -> None:
    """It reads from the pipe that its standard input is, until that is closed here."""
    reading, writing = os.pipe()
    script = f"os.dup2({writing}, 3)\n" + dedent(LEAVES_A_DAEMON)
    process = start(script, pass_fds=[writing])
    os.close(writing)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None

    assert _told(process.stdout.readline())[0] == 1
    process.wait(LIMIT_S)
    process.stdin.close()

    assert process.stderr.read() == b"late\n"
    assert os.read(reading, 100) == b"written"
    os.close(reading)


WRITES_LATER = """
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", flush=True)
    sys.stdin.readline()
    os.write(2, b"later\\n")
    print("written", flush=True)
"""


def test_a_script_whose_parent_was_killed_can_write(start: Start) -> None:
    process = start(WRITES_LATER)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"ready\n"

    process.kill()
    process.wait(LIMIT_S)
    process.stdin.write(b"go on\n")
    process.stdin.close()

    assert process.stdout.read() == b"written\n"
    assert process.stderr.read() == b"later\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTSTP])
def test_last_words_are_heard_after_a_signal_to_all(number: int, start: Start) -> None:
    script = WRITES_LATER.replace("SIGTERM", signal.Signals(number).name)
    process = start(script)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"

    os.killpg(process.pid, number)
    if number == signal.SIGTSTP:
        os.killpg(process.pid, signal.SIGCONT)

    out, err = process.communicate(b"go on\n", timeout=LIMIT_S)
    assert err == b"later\n"
    assert _told(out)[2] == 0


def test_where_nobody_reads_any_more_the_script_is_told_as_without_us(start: Start) -> None:
    script = """
        sys.stdin.readline()
        try:
            while True:
                os.write(2, b"x\\n")
        except BrokenPipeError:
            sys.exit(9)
    """
    process = start(script)
    assert process.stderr is not None
    process.stderr.close()

    process.stderr = None
    out, _ = process.communicate(b"\n", timeout=LIMIT_S)
    assert _told(out)[2] == 9


@pytest.mark.parametrize("name", ["TF_CPP_MAX_VLOG_LEVEL", "TF_CPP_VMODULE"])
def test_who_asks_for_the_log_gets_it(name: str, start: Start) -> None:
    out, err = start("", variables={name: "1"}).communicate(timeout=LIMIT_S)

    assert err == f"{NOISE}\n".encode()
    assert _told(out) == [0, [], 0]


def test_the_null_device_stays_the_null_device(start: Start) -> None:
    script = "print(os.path.samestat(os.fstat(2), os.stat(os.devnull)))"

    out, _ = start(script, stderr=subprocess.DEVNULL).communicate(timeout=LIMIT_S)

    assert out.startswith(b"True\n")


def test_a_closed_one_stays_closed(start: Start) -> None:
    script = """
        try:
            os.fstat(2)
        except OSError:
            print("closed", flush=True)
    """
    out, _ = start(script, preexec_fn=lambda: os.close(2)).communicate(timeout=LIMIT_S)

    assert out.startswith(b"closed\n")


def test_without_a_process_the_script_gets_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passage, "PUMP", tmp_path / "missing.py")

    assert passage.open_passage(tmp_path / "log") is None


class Terminal:
    """One that is the controlling terminal of a run."""

    def __init__(self) -> None:
        self.controller, self.terminal = pty.openpty()
        self.resize(30, 100)

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("4H", lines, columns, 0, 0))

    def take(self) -> None:
        """In the process that is to have it, before it begins."""
        fcntl.ioctl(self.terminal, termios.TIOCSCTTY, 0)

    def read_until(self, text: bytes) -> bytes:
        seen = b""
        give_up_at = time.monotonic() + LIMIT_S
        while text not in seen and time.monotonic() < give_up_at:
            seen += os.read(self.controller, 1000)
        return seen


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    os.close(made.controller)
    os.close(made.terminal)


ON_A_TERMINAL = """
    print(os.isatty(2), *os.get_terminal_size(2), file=sys.stderr)
    while os.get_terminal_size(2).columns == 100:
        time.sleep(0.01)
    print(*os.get_terminal_size(2), "resized", file=sys.stderr)
    os.write(2, b"\\r 50%|##" + noise.encode() + b"\\n\\r100%|####\\n")
"""


def test_a_terminal_stays_one_with_its_size_and_its_line_ends(
    start: Start, terminal: Terminal
) -> None:
    process = start(ON_A_TERMINAL, stderr=terminal.terminal, preexec_fn=terminal.take)
    assert terminal.read_until(b"\n") == b"True 100 30\r\n"

    terminal.resize(40, 120)

    assert terminal.read_until(b"####") == b"120 40 resized\r\n\r 50%|##\r100%|####\r\n"
    out, _ = process.communicate(timeout=LIMIT_S)
    assert _told(out)[0] == 2


def _read(descriptor: int, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += os.read(descriptor, count - len(data))
    return data
