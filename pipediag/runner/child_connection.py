"""The parent's end of what the child tells, and how long the child is waited for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Literal

from pipediag.session.messages import (
    FROM_CHILD,
    Answer,
    Command,
    FromChild,
    TrialsAwaited,
    decode,
)

CHUNK_BYTES = 1 << 16

Ask = Callable[[Command, float], Answer]
"""Puts a command to the child and waits for its answer, so many seconds at most. It raises
ExecutorLostError where there will be no answer. A child that hangs is ended."""
OnTrials = Callable[[TrialsAwaited, Ask], None]


class MessageReader:
    """Reads what the child tells without ever waiting for the pipe's end: grandchildren may hold it
    open long after the script has gone."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._partial = b""

    def read(self) -> Iterator[FromChild]:
        """Return the messages that have arrived, in order; lines that are none are passed over."""
        with suppress(BlockingIOError):
            while chunk := os.read(self.descriptor, CHUNK_BYTES):
                self._partial += chunk
        *lines, self._partial = self._partial.split(b"\n")
        for line in lines:
            message = decode(line, FROM_CHILD)
            if message is not None:
                yield message


EXIT_GRACE_S = 10.0
"""Longest interpreter exit, once nothing of the script is left to run."""

IDLE_S = 20.0
"""Longest time without CPU time and output in the script's own last code."""

LONGEST_S = 600.0
"""Own choice: a script that is still busy after that ignored the request to stop."""
LONGEST_IN_JOB_S = 60.0
"""Own choice: a worker of a job may wait for a peer that has gone, as busy as ever."""

_LOOK_EVERY_S = 0.5

Stage = Literal["running", "stopping", "leaving"]


class Patience:
    """Asked again and again whether it is over."""

    def __init__(
        self,
        activity: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
        longest_s: float = LONGEST_S,
    ) -> None:
        self.stage: Stage = "running"
        self._activity = activity
        self._clock = clock
        self._longest_s = longest_s
        self._since = self._active_at = self._looked_at = 0.0
        self._last: object = None

    def stopping(self) -> None:
        """Note that the script was asked to stop, or that its last line has run."""
        if self.stage == "running":
            self.stage = "stopping"
            self._since = self._active_at = self._looked_at = self._clock()
            self._last = self._activity()

    def leaving(self) -> None:
        """Note that nothing of the script is left to run."""
        if self.stage != "leaving":
            self.stage, self._since = "leaving", self._clock()

    def running(self) -> None:
        """Note that the script goes on after all."""
        self.stage = "running"

    def is_over(self) -> bool:
        """Return True if it was waited for long enough."""
        now = self._clock()
        if self.stage == "leaving":
            return now - self._since > EXIT_GRACE_S
        if self.stage == "running":
            return False
        if now - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at, activity = now, self._activity()
            if activity != self._last:
                self._last, self._active_at = activity, now
        return now - self._active_at > IDLE_S or now - self._since > self._longest_s


def activity_of(pid: int) -> dict[int, object]:
    """Return CPU time, and calls and bytes written, of a process and of those it started."""
    import psutil

    found: dict[int, object] = {}
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.Error, AttributeError):  # the second may be unreadable, or not be
                found[one.pid] = cpu_s = one.cpu_times()[:4]
                written = one.io_counters()
                found[one.pid] = (*cpu_s, written.write_count, written.write_chars)
    return found
