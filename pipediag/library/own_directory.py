"""A temporary directory that goes with the last one who holds it."""

from __future__ import annotations

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
        self._removal = weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)

    def cleanup(self) -> None:
        """Remove it now; a second call does nothing."""
        self._removal()
