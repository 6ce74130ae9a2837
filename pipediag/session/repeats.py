"""Several sessions of one script: a directory in which each run has its own."""

from __future__ import annotations

from pathlib import Path

from pipediag.session.files import SESSION_FILE

MOST = 100
"""Runs in one directory; more than anybody makes, and an end to what a stranger can."""


def session_paths(path: Path) -> list[Path]:
    """The path itself, or, of a directory of runs, the directory of each, in their order.

    A directory of runs holds no session, but directories that do, as `analyze --repeats` makes it.
    """
    if not path.is_dir() or (path / SESSION_FILE).exists():
        return [path]
    runs = [one for one in path.iterdir() if (one / SESSION_FILE).is_file()]
    return sorted(runs, key=lambda one: (len(one.name), one.name))[:MOST] or [path]
