"""The two pipes between this process and the parent: messages and commands."""

from __future__ import annotations

import math
import os
import select
import signal
import time
from contextlib import suppress

from pipediag.capture.process import broken_pipes_are_errors
from pipediag.session.messages import (
    COMMANDS,
    Answer,
    Closing,
    Command,
    Ended,
    FromChild,
    NotSaved,
    Refused,
    TrialsOver,
    decode,
    encode,
)

ROOM_LIMIT_S = 5.0
"""Longest wait of a message that the parent needs for room in the pipe. The parent empties it
ten times a second, so a pipe that is full for longer has nobody at its other end."""

_NEEDED = Answer | TrialsOver | Refused | NotSaved | Ended | Closing
"""The parent waits for these, or learns the outcome. Others are dropped if there is no room."""

ASKING_LIMIT_S = 120.0
"""Longest wait of a held training for a command. Own choice: before its first command the
parent reads the profile, which takes seconds; between two it decides at once."""

_LOOK_EVERY_S = 0.01
_CHUNK_BYTES = 1 << 16


class Teller:
    """Tells the parent; one that is gone or stuck must not disturb the script."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        self._cut = False
        """True if the last line may lack its end."""
        if descriptor is not None:
            os.set_inheritable(descriptor, False)
            os.set_blocking(descriptor, False)

    def tell(self, message: FromChild) -> None:
        """Write one message; without a parent, do nothing."""
        if self._descriptor is None:
            return
        limit_s = ROOM_LIMIT_S if isinstance(message, _NEEDED) else 0.0
        line = (b"\n" if self._cut else b"") + encode(message)
        self._cut = True
        with suppress(OSError), broken_pipes_are_errors():
            self._cut = not _found_room(self._descriptor, line, limit_s)


def _found_room(descriptor: int, line: bytes, limit_s: float) -> bool:
    give_up_at = time.monotonic() + limit_s
    while line:
        try:
            line = line[os.write(descriptor, line) :]
        except BlockingIOError:
            if time.monotonic() >= give_up_at:
                return False
            time.sleep(_LOOK_EVERY_S)
    return True


class NoCommandError(Exception):
    """The parent asked for nothing that is understood, or for nothing in time, and may still do so
    when nobody listens any more."""


class CommandPipe:
    """Reads commands; waiting for one holds the training thread, and no lock."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._partial = b""
        # Not `select`, which refuses the descriptors of programs that have many open.
        self._readable = select.poll()
        self._readable.register(descriptor, select.POLLIN)

    def next(self) -> Command | None:
        """Return the next command, or None once the parent asks nothing more.

        Raises NoCommandError if none has come within the time for it.
        """
        give_up_at = time.monotonic() + ASKING_LIMIT_S
        while b"\n" not in self._partial:
            left_s = max(0.0, give_up_at - time.monotonic())
            if not self._readable.poll(math.ceil(left_s * 1e3)):
                raise NoCommandError(
                    "pipediag's own process sent no command for "
                    f"{ASKING_LIMIT_S:g} s, while the training waited for it"
                )
            chunk = os.read(self._descriptor, _CHUNK_BYTES)
            if not chunk:
                return None
            self._partial += chunk
        line, _, self._partial = self._partial.partition(b"\n")
        command = decode(line, COMMANDS)
        if command is None:
            raise NoCommandError("a command was not understood")
        return command


LONGEST_ERROR = 10_000
"""Characters of an error that are kept: its text can be a dump of data."""


def how_it_ended(error: BaseException | None) -> Ended:
    """Return the message about code that was left by an exception, or by none."""
    if error is None:
        return Ended("finished", 0)
    if isinstance(error, SystemExit):
        code = 0 if error.code is None else error.code
        return Ended("exited", code & 0xFF if isinstance(code, int) else 1)
    description = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
    if isinstance(error, KeyboardInterrupt):
        return Ended("interrupted", -signal.SIGINT, description)
    return Ended("raised", 1, description)
