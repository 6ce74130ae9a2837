"""Files that a script made or changed before it was stopped: its next run may find and use them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

MOST_ENTRIES = 10_000
LONGEST_S = 1.0
MOST_NAMED = 20
_SAID = 3
_LEFT_OUT = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


def written_since(
    began_s: float,
    folders: Iterable[Path],
    left_out: Iterable[Path],
    clock: Callable[[], float] = time.monotonic,
) -> list[str]:
    """Files in these folders and below that were made or changed since a time of day, sorted.

    Relative to the working directory where they lie in it. The search is a short one, as a folder
    may hold a data set: `MOST_ENTRIES` and `LONGEST_S` at most. Hidden folders, environments and
    what `left_out` names are passed over, and so are files that our own output goes to.
    """
    ours = {known for number in (1, 2) if (known := _identity(number)) is not None}
    skipped = {os.path.realpath(path) for path in left_out}
    give_up_at = clock() + LONGEST_S
    found: set[str] = set()
    seen = 0
    for entry in _entries(folders, skipped):
        seen += 1
        if seen > MOST_ENTRIES or clock() > give_up_at:
            break
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        is_new = max(status.st_mtime, status.st_ctime) >= began_s
        if is_new and (status.st_dev, status.st_ino) not in ours:
            found.add(entry.path)
    return sorted(map(_shown, found))


def _identity(number: int) -> tuple[int, int] | None:
    """Of the file behind a descriptor; None where that is closed."""
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def sentence(files: list[str], stopped: str = "The script was stopped.") -> str:
    """What the report says of them; for none, nothing is to be said."""
    named = ", ".join(files[:_SAID])
    more = len(files) - _SAID
    one = len(files) == 1
    return (
        f"{stopped} While it ran, {named}"
        f"{f' and {more} more' if more > 0 else ''} {'was' if one else 'were'} made or changed: "
        f"its next run may find and use {'it' if one else 'them'}."
    )


def _entries(folders: Iterable[Path], skipped: set[str]) -> Iterator[os.DirEntry[str]]:
    pending = [os.path.realpath(folder) for folder in folders]
    known = set(skipped)
    while pending:
        folder = pending.pop(0)
        if folder in known:
            continue
        known.add(folder)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield entry
            elif not entry.name.startswith(".") and entry.name not in _LEFT_OUT:
                pending.append(entry.path)


def _shown(path: str) -> str:
    working = os.path.realpath(".")
    inside = os.path.commonpath([working, path]) == working
    return os.path.relpath(path, working) if inside else path
