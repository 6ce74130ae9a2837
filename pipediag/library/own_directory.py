"""A temporary directory that goes with the last one who holds it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref


class OwnDirectory:
    """Made at once, and removed without a word: what Python's own has left to the collector is a
    `ResourceWarning`, which fails the tests of whoever takes warnings for errors.

    Attributes:
        name: its path.
    """

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="pipediag-")
        self._removal = weakref.finalize(self, _remove, self.name, os.getpid())

    def cleanup(self) -> None:
        """Remove it now; a second call does nothing."""
        self._removal()


def _remove(path: str, owner: int) -> None:
    """A child that was forked exits with a finalizer of its own, and must leave it alone."""
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
