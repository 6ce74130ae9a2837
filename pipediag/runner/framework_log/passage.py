"""The way of a script's standard error through another process, which `pump` is."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

from pipediag.runner.framework_log.kept import NOTHING, Report
from pipediag.runner.framework_log.terminal import terminal_like

PUMP = Path(__file__).with_name("pump.py")
SHOWN = 2

STARTED_WITHIN_S = 5.0
"""An interpreter without any library takes some hundredths of a second."""
DRAINED_WITHIN_S = 2.0
ENDED_WITHIN_S = 0.1

_LOOK_S = 0.002
_CHUNK_BYTES = 1 << 16


class Passage:
    """What the script is given, and the process that reads from it."""

    def __init__(self, pump: int, script_end: int, asked: socket.socket) -> None:
        self._pump = pump
        self.script_end = script_end
        """A descriptor; -1 once it is closed here."""
        self._asked = asked
        self._said = b""

    def is_ready(self) -> bool:
        """Whether it says so in time."""
        return self._report(STARTED_WITHIN_S) is not None

    def abandon(self) -> None:
        """End it before anything was written to it."""
        self.close_script_end()
        self._asked.close()
        with suppress(ProcessLookupError):
            os.kill(self._pump, signal.SIGKILL)
        self._wait()

    def close_script_end(self) -> None:
        """It ends with those who can write to it; we are none of them any more."""
        if self.script_end >= 0:
            os.close(self.script_end)
            self.script_end = -1

    def settle(self) -> Report:
        """What was folded, once all that is written by now is shown, or that takes too long.

        Where something that the script has started can still write, it goes on without us.
        """
        self.close_script_end()
        with suppress(OSError):
            self._asked.send(b"?")
        report = self._report(DRAINED_WITHIN_S)
        self._asked.close()
        self._wait()
        return report or NOTHING

    def _wait(self) -> None:
        """Until it has ended, if it does so now."""
        give_up_at = time.monotonic() + ENDED_WITHIN_S
        # Whoever started us may have had SIGCHLD ignored: then nothing is there to wait for.
        with suppress(ChildProcessError):
            while os.waitpid(self._pump, os.WNOHANG)[0] == 0 and time.monotonic() < give_up_at:
                time.sleep(_LOOK_S)

    def _report(self, limit_s: float) -> Report | None:
        """The next one; None where none comes in time."""
        give_up_at = time.monotonic() + limit_s
        while b"\n" not in self._said:
            left_s = max(0.0, give_up_at - time.monotonic())
            if not select.select([self._asked], [], [], left_s)[0]:
                return None
            try:
                more = self._asked.recv(_CHUNK_BYTES)
            except OSError:
                more = b""
            if not more:
                return None
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return Report.decoded(line)


def open_passage(log: Path) -> Passage | None:
    """One that keeps what it folds in a file.

    None where standard error leads nowhere, or no process can be had.
    """
    if not _leads_somewhere(SHOWN):
        return None
    try:
        opened = _open(log)
    except OSError:
        return None
    if opened.is_ready():
        return opened
    opened.abandon()
    return None


def _leads_somewhere(descriptor: int) -> bool:
    """Also false where a script would find it closed."""
    try:
        to_null = os.path.samestat(os.fstat(descriptor), Path(os.devnull).stat())
        return os.get_inheritable(descriptor) and not to_null
    except OSError:
        return False


def _open(log: Path) -> Passage:
    reading, script_end = terminal_like(SHOWN) if os.isatty(SHOWN) else os.pipe()
    ours, theirs = socket.socketpair()
    try:
        for descriptor in (reading, theirs.fileno()):
            os.set_inheritable(descriptor, True)
        return Passage(_spawn(reading, theirs.fileno(), log), script_end, ours)
    except OSError:
        os.close(script_end)
        ours.close()
        raise
    finally:
        os.close(reading)
        theirs.close()


def _spawn(reading: int, asked: int, log: Path) -> int:
    command = [sys.executable, "-I", "-S", str(PUMP), str(reading), str(asked), str(log)]
    nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
    return os.posix_spawn(sys.executable, command, os.environ, file_actions=nowhere)
