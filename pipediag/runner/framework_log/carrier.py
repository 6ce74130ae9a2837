"""What the process does that a script's standard error goes through; see `pump`."""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from contextlib import suppress

from pipediag.runner.framework_log.kept import Kept
from pipediag.runner.framework_log.sieve import Sieve
from pipediag.runner.framework_log.terminal import copy_size

SHOWN = 2
"""Where everything goes."""

HELD_S = 0.05
"""How long the start of a line is held back that may be one to fold."""
QUIET_S = 0.02
"""What was written to a terminal can be read this much later, and no later, on an idle machine."""
DRAINED_WITHIN_S = 0.5
"""Where a process that outlives the script goes on writing."""

_AT_ONCE = 1 << 16
_NOT_FOR_US = frozenset(signal.Signals) - {
    signal.SIGKILL,
    signal.SIGSTOP,
    signal.SIGCONT,
    signal.SIGCHLD,
    signal.SIGWINCH,
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGILL,
    signal.SIGFPE,
    signal.SIGABRT,
    signal.SIGTRAP,
    signal.SIGSYS,
}
"""It ends when the script's writing does. What comes from the keyboard is the script's, which may
have words to say to it; and we write to the terminal for it wherever it runs."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def stand_by(source: int, asked: int) -> None:
    """Be there for nothing else: no signal, and no file that somebody waits for the end of."""
    for number in _NOT_FOR_US:
        signal.signal(number, signal.SIG_IGN)
    if os.isatty(source):
        signal.signal(signal.SIGWINCH, lambda _number, _frame: copy_size(SHOWN, source))
        # It may have been made larger before.
        copy_size(SHOWN, source)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - pathlib is slow to import
        if descriptor not in (0, 1, SHOWN, source, asked):
            # One of them is that of the directory, which is closed already.
            with suppress(OSError):
                os.close(descriptor)


class Carrier:
    """Carries on all but what is folded, and tells how much that is whenever it is asked."""

    def __init__(self, source: int, asked: int, log: str) -> None:
        self._source = source
        self._asked = asked
        self._kept = Kept(log)
        self._sieve = Sieve(self._kept)
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        self._poll.register(asked, select.POLLIN)
        self._give_up_at: float | None = None
        self._open = True

    def run(self) -> None:
        """Until nobody can write any more."""
        self._tell()
        while self._open:
            for descriptor, _ in self._poll.poll(self._patience_ms()):
                if descriptor == self._source:
                    self._carry()
                else:
                    self._answer()
            self._release_if_due()
        show(self._sieve.give_up())
        self._tell()

    def _patience_ms(self) -> float | None:
        if self._give_up_at is None:
            return None
        return max(0.0, self._give_up_at - time.monotonic()) * 1e3

    def _carry(self) -> None:
        data = _read(self._source)
        self._open = bool(data)
        show(self._sieve.feed(data))
        if not self._sieve.holds:
            self._give_up_at = None
        elif self._give_up_at is None:
            self._give_up_at = time.monotonic() + HELD_S

    def _release_if_due(self) -> None:
        if self._give_up_at is not None and time.monotonic() >= self._give_up_at:
            self._give_up_at = None
            show(self._sieve.give_up())

    def _answer(self) -> None:
        """All that was written before the question is shown before the answer."""
        try:
            question = os.read(self._asked, 1)
        except OSError:
            question = b""
        if not question:
            self._poll.unregister(self._asked)
            return
        drained_by = time.monotonic() + DRAINED_WITHIN_S
        while self._open and time.monotonic() < drained_by:
            if not select.select([self._source], [], [], QUIET_S)[0]:
                break
            self._carry()
        self._give_up_at = None
        show(self._sieve.give_up())
        self._tell()

    def _tell(self) -> None:
        # Pipediag may be gone.
        with suppress(OSError):
            os.write(self._asked, self._kept.report().encoded())


def copy_all(source: int) -> None:
    """Carry everything on as it is, until nobody can write any more."""
    while data := _read(source):
        show(data)


def show(data: bytes) -> None:
    """Write it in pieces that no other process writes into, where they end with a line.

    Where nobody can be shown anything any more, the script is to find that out: the process ends.
    """
    while data:
        end = len(data)
        if end > select.PIPE_BUF:
            end = data.rfind(b"\n", 0, select.PIPE_BUF) + 1 or select.PIPE_BUF
        try:
            written = os.write(SHOWN, data[:end])
        except BlockingIOError:
            select.select([], [SHOWN], [])
            continue
        except OSError as error:
            if error.errno not in _FULL:
                os._exit(0)
            written = end
        data = data[written:]


def _read(source: int) -> bytes:
    """What is there; nothing at the end."""
    try:
        return os.read(source, _AT_ONCE)
    except OSError:
        # So a terminal ends.
        return b""
