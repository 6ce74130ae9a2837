"""Where a report goes that was given no `-o`, and how to name where one is."""

from __future__ import annotations

import os
from pathlib import Path

REPORTS = "reports"


def default_directory(script: str, *, module: bool) -> Path:
    """`reports/<script stem>`; a module goes by its full name, a directory by its own.

    Args:
        script: as typed, a path from the working directory or a module's name.
        module: whether it is the latter.
    """
    return Path(REPORTS) / (script if module else _resolved(Path(script)).stem)


def as_typed(path: Path) -> Path:
    """A path as a person would type it here."""
    if not path.is_absolute():
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else Path(relative)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        # A session from elsewhere may name what is no path here: a loop of links, a NUL.
        return path
