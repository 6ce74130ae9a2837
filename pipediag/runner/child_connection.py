"""The parent's ends of the two pipes: what the child tells, and what a held loop is asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Protocol

from pipediag.session.messages import (
    FROM_CHILD,
    Answer,
    Command,
    FromChild,
    TrialsAwaited,
    decode,
    encode,
)

CHUNK_BYTES = 1 << 16


class ChildGone(Exception):  # noqa: N818 - no error of anybody's
    """The child does not answer any more; the message is a sentence that says why."""


class Ask(Protocol):
    """Puts a command to the child and waits for its answer, `limit_s` at most.

    Raises:
        ChildGone: there will be no answer. A child that hangs is ended.
    """

    def __call__(self, command: Command, limit_s: float) -> Answer: ...


OnTrials = Callable[[TrialsAwaited, Ask], None]


class CommandPipe:
    """The pipe to the child, whose end the child inherits."""

    def __init__(self, writing: int | None = None) -> None:
        """Make a pipe; `writing` is our end of one that others have made."""
        self._childs_end_open = writing is None
        if writing is not None:
            self._writing = writing
            return
        self.childs_end, self._writing = os.pipe()
        os.set_inheritable(self.childs_end, True)

    def close_childs_end(self) -> None:
        os.close(self.childs_end)
        self._childs_end_open = False

    def write(self, command: Command) -> None:
        os.write(self._writing, encode(command))

    def close(self) -> None:
        os.close(self._writing)
        if self._childs_end_open:
            self.close_childs_end()


class MessageReader:
    """Reads what the child tells without ever waiting for the pipe's end.

    Grandchildren may hold the pipe open long after the script has gone.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._partial = b""

    def read(self) -> Iterator[FromChild]:
        """The messages that have arrived, in order; lines that are none are passed over."""
        for line in self._lines():
            message = decode(line, FROM_CHILD)
            if message is not None:
                yield message

    def _lines(self) -> list[bytes]:
        while chunk := self._chunk():
            self._partial += chunk
        *lines, self._partial = self._partial.split(b"\n")
        return lines

    def _chunk(self) -> bytes:
        try:
            return os.read(self.descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return b""
