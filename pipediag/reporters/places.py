"""Source locations, shortened so that they are still recognised."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath

from pipediag.session.model import Session

_LIBRARY_DIRECTORIES = ("site-packages", "dist-packages")


class Places:
    """Shows files of the user's project relative to the directory that they share."""

    def __init__(self, session: Session) -> None:
        self._root = _shared_directory(session)

    def short(self, file: str | None) -> str:
        """The file without the part of its path that says nothing; libraries by package path."""
        if file is None:
            return ""
        path = PurePath(file)
        for directory in _LIBRARY_DIRECTORIES:
            if directory in path.parts:
                return str(PurePath(*path.parts[path.parts.index(directory) + 1 :]))
        if self._root and path.is_relative_to(self._root):
            return str(path.relative_to(self._root))
        return file

    def at(self, file: str | None, line: int | None) -> str:
        """`file:line`, or the empty string where the file is not known."""
        if file is None:
            return ""
        return self.short(file) if line is None else f"{self.short(file)}:{line}"


def _shared_directory(session: Session) -> str | None:
    directories = {
        os.path.dirname(file)  # noqa: PTH120 - paths of another machine are only text here
        for file in _project_files(session)
        if os.path.isabs(file)  # noqa: PTH117
    }
    if not directories:
        return None
    shared = os.path.commonpath(directories)
    return shared if len(PurePath(shared).parts) > 1 else None


def _project_files(session: Session) -> Iterator[str]:
    operations = session.pipeline.ops if session.pipeline else []
    located = [*operations, *session.loops, *session.findings, *session.other_uses, session.verdict]
    for item in located:
        if item.file is not None and not any(part in item.file for part in _LIBRARY_DIRECTORIES):
            yield item.file
