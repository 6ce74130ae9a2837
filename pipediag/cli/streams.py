"""Standard output and standard error of pipediag itself, which may lead nowhere.

That our words reach nobody is no result of an analysis: what a command ends with does not depend on
it, but for a document on standard output that could not be written.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from pipediag.descriptors import occupy_closed
from pipediag.errors import PipediagError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDOUT, _STDERR = 1, 2


def take_standard_streams() -> None:
    """Make `sys.stdout` and `sys.stderr` streams that can always be written to, and flushed.

    A reader that has left is not told any more. Standard output raises PipediagError where it
    cannot be written for another reason.
    """
    occupy_closed()
    sys.stdout = _text_stream(sys.stdout, _STDOUT, _refuse)
    sys.stderr = _text_stream(sys.stderr, _STDERR, _ignore)


class _Descriptor(io.FileIO):
    """Writes to a descriptor; where that fails, what was to be written is gone."""

    def __init__(self, descriptor: int, failed: Callable[[OSError], None]) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._failed = failed

    def write(self, data: ReadableBuffer) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except BrokenPipeError:
            pass
        except OSError as error:
            self._failed(error)
        return len(memoryview(data).cast("B"))


def _text_stream(
    given: TextIO | None, descriptor: int, failed: Callable[[OSError], None]
) -> io.TextIOWrapper:
    encoding, errors = ("utf-8", "replace") if given is None else (given.encoding, given.errors)
    return io.TextIOWrapper(
        io.BufferedWriter(_Descriptor(descriptor, failed)),
        encoding=encoding,
        errors=errors,
        line_buffering=descriptor == _STDERR or os.isatty(descriptor),
    )


def _ignore(_error: OSError) -> None:
    """Nobody can be told."""


def _refuse(error: OSError) -> None:
    raise PipediagError(
        f"standard output cannot be written: {error.strerror}. What belongs there is lost; files "
        "that were written before are not."
    ) from error
