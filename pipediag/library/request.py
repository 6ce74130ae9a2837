"""What the process that measures asks of the one beside it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class CompanionRequest:
    """Passed as a JSON file; descriptors are inherited."""

    pid: int
    """Of the process that measures."""
    capture: str
    directory: str
    """Where the session goes."""
    reading: int
    """From where it reads what it is told."""
    writing: int | None
    """To where it writes commands; None where nothing is to be tried."""
    budget_s: float
    """Time for trials."""
    began_ns: int
    """When the measurement began, by `time.monotonic_ns()`."""
    kept: bool = False
    """Whether the directory is the user's: reports are written there, too, and what is in it stays
    where the program ends too soon."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> CompanionRequest:
        return cls(**json.loads(path.read_text(encoding="utf-8")))
