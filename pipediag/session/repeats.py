"""Several sessions of one script: a directory in which each run has its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.store import load_session

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


def load_runs(
    paths: Iterable[Path], tell: Callable[[str], None] | None = None
) -> list[tuple[Path, Session]]:
    """The sessions of all these runs, as they are judged together.

    Each is without its rows of single steps and readings of the host: nothing that judges asks for
    these, and a hundred long runs have too many of them to be held at once. A file that is named
    twice is one run: taken for two, it would be two that agree to the last digit.

    Raises:
        PipediagError: one of them can't be read, as with `load_session`.
    """
    named = [run for path in paths for run in session_paths(path)]
    runs: dict[str, Path] = {}
    for run in named:
        runs.setdefault(_file(run), run)
    again = len(named) - len(runs)
    if again and tell is not None:
        tell(f"pipediag: {again} of the {len(named)} sessions are named twice, and are taken once.")
    return [(path, without_rows(load_session(path))) for path in runs.values()]


def _file(run: Path) -> str:
    """Whatever way to it was named."""
    return os.path.realpath(run / SESSION_FILE if run.is_dir() else run)


def without_rows(session: Session) -> Session:
    """All of it but what has a row for each step, or for each reading."""
    return session.model_copy(update={"step_rows": [], "host_samples": []})
