"""What the parent asks of this process between two steps: one JSON object a line."""

from __future__ import annotations

import json
import os
from typing import Any

Command = dict[str, Any]

_CHUNK_BYTES = 1 << 16


class CommandPipe:
    """Reads commands; waiting for one holds the training thread, and no lock."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._partial = b""

    def next(self) -> Command | None:
        """The next command, or None once the parent asks nothing more."""
        while b"\n" not in self._partial:
            chunk = os.read(self._descriptor, _CHUNK_BYTES)
            if not chunk:
                return None
            self._partial += chunk
        line, _, self._partial = self._partial.partition(b"\n")
        command: Command = json.loads(line)
        return command
