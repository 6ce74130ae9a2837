"""Which signals the script has had by itself: those that a process beside it has had as well.

A signal sent to the process group, or to each process of a control group or job in turn, reaches
the script and us; one sent to us alone is ours to pass on. From the signal itself the two cannot be
told apart. A third process can: what it has had, the script has had.
"""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Iterator
from typing import NoReturn

Arrival = tuple[int, int]
"""Number of a signal, and the process that sent it; 0 is the kernel, as for Ctrl-C."""

ANSWER_WITHIN_S = 2.0
"""On a busy machine it may have to wait for its turn; it has hardly anything to do."""

_CHUNK_BYTES = 1 << 16


def arrived(numbers: frozenset[signal.Signals]) -> Iterator[Arrival]:
    """The signals that this process has had, of those which it has blocked."""
    while (found := signal.sigtimedwait(numbers, 0)) is not None:
        yield found.si_signo, found.si_pid


class Witness:
    """A process in our process group that keeps the signals that it gets, and ends with us.

    Make it where these signals are blocked and no other thread runs.
    """

    def __init__(self, numbers: frozenset[signal.Signals]) -> None:
        asked, self._ask = os.pipe()
        self._answer, answering = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _stand_by(numbers, asked, answering)
        os.close(asked)
        os.close(answering)

    def has_had(self) -> set[Arrival]:
        """What has reached it since it was asked last; nothing where it is gone or was stopped."""
        try:
            os.write(self._ask, b"?")
        except BrokenPipeError:
            return set()
        if not select.select([self._answer], [], [], ANSWER_WITHIN_S)[0]:
            return set()
        lines = os.read(self._answer, _CHUNK_BYTES).splitlines()
        # More than one where an earlier answer came late.
        return {(number, sender) for line in lines for number, sender in json.loads(line)}

    def dismiss(self) -> None:
        os.close(self._ask)
        os.close(self._answer)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _stand_by(numbers: frozenset[signal.Signals], asked: int, answering: int) -> NoReturn:
    try:
        low, high = sorted((asked, answering))
        # Whatever else is open would not be seen to end while a copy of it is here.
        os.closerange(0, low)
        os.closerange(low + 1, high)
        os.closerange(high + 1, os.sysconf("SC_OPEN_MAX"))
        while os.read(asked, 1):
            os.write(answering, json.dumps(list(arrived(numbers))).encode() + b"\n")
    finally:
        os._exit(0)
