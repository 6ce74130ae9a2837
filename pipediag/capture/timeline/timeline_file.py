"""The file that spans and lines go to, opened for each of them and closed again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from pipediag.session.timeline import Span, span_line, until_line

_MOST_LINES = 200_000
"""Own choice: some 20 MB of text, and more than ten thousand epochs."""

FULL = (
    "The script did so much one after the other that pipediag stopped writing down where its time "
    "goes: what came later is not in the ledger of the run."
)
DELETED = (
    "The script deleted what pipediag had written down of where its time goes: what came before "
    "is missing in the ledger of the run."
)


class TimelineFile:
    """Nothing that goes wrong with it is raised: it is noted, once."""

    def __init__(self, path: Path, note: Callable[[str], None]) -> None:
        self._path = path
        self._note = note
        self._lines_left = _MOST_LINES
        self._begun = False
        self.takes_more = True

    def append(self, line: bytes, lasting: Iterable[Span]) -> None:
        """Write a line; the spans that last are written again where the file was deleted."""
        if not self.takes_more:
            return
        self._lines_left -= 1
        self._write(line, lasting)
        if self._lines_left <= 0:
            self._note(FULL)
            self.end_here()

    def end_here(self) -> None:
        """From now on nothing is known, although the script goes on."""
        if self.takes_more:
            self.takes_more = False
            self._write(until_line(time.monotonic_ns()), ())

    def leave(self) -> None:
        """In a forked child: the file is the parent's."""
        self.takes_more = False

    def _write(self, line: bytes, lasting: Iterable[Span]) -> None:
        try:
            self._append(line, lasting)
        except OSError as error:
            # What is lost of the next lines is no worse; a disk or descriptors may be free again.
            self._note(
                "What the script did could not be written down at some moments, so the ledger of "
                f"the run may be without it: {error.strerror}."
            )

    def _append(self, line: bytes, lasting: Iterable[Span]) -> None:
        # Opened each time: a script may close what it has not opened, and reuse the number.
        try:
            file = self._path.open("ab", buffering=0)
        except FileNotFoundError:
            # The script may clean up where our directory is.
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = self._path.open("ab", buffering=0)
        with file:
            if self._begun and file.tell() == 0:
                self._note(DELETED)
                line = b"".join(map(span_line, lasting)) + line
            self._begun = True
            file.write(line)
