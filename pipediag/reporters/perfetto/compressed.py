"""A gzip file that is written piece by piece, and is there only when it is whole."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pipediag.session.files import replacing

_LEVEL = 3
"""A trace shrinks to a tenth at any level, and level 9 takes ten times as long."""
_BUFFER_BYTES = 1 << 20


@contextmanager
def compressed(path: Path) -> Iterator[TextIO]:
    """The text stream to write to; the file appears at `path` when the block ends without error.

    Raises PipediagError where it cannot be written; what was at `path` before is still there then.
    """
    with (
        replacing(path) as file,
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
        io.BufferedWriter(packed, _BUFFER_BYTES) as buffered,
        io.TextIOWrapper(buffered, encoding="utf-8", newline="") as stream,
    ):
        yield stream
