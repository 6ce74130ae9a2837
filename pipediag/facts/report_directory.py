"""Where a report goes that was given no `-o`."""

from __future__ import annotations

from pathlib import Path

REPORTS = "reports"


def default_directory(script: str, *, module: bool) -> Path:
    """`reports/<script stem>`; a module goes by its full name, a directory by its own.

    Args:
        script: as typed, a path from the working directory or a module's name.
        module: whether it is the latter.
    """
    return Path(REPORTS) / (script if module else _resolved(Path(script)).stem)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        # A session from elsewhere may name what is no path here: a loop of links, a NUL.
        return path
