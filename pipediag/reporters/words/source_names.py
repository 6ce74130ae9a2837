"""Source locations, shortened so that they are still recognised."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath

from pipediag.session.model import Session

_LIBRARY_DIRECTORIES = ("site-packages", "dist-packages")
_LONGEST = 100


class SourceNames:
    """Shows files of the user's project relative to the directory that they share."""

    def __init__(self, session: Session) -> None:
        self._root = _shared_directory(session)

    def short(self, file: str | None) -> str:
        """The file without the part of its path that says nothing; libraries by package path.

        Of a path that is still too long for a table, the end is kept.
        """
        if file is None:
            return ""
        shown = self._relative(file)
        return shown if len(shown) <= _LONGEST else "…" + shown[1 - _LONGEST :]

    def _relative(self, file: str) -> str:
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
    files = [
        session.verdict.file,
        session.verdict.where_file,
        *(op.file for op in (session.pipeline.ops if session.pipeline else [])),
        *(loop.file for loop in session.loops),
        *(finding.file for finding in session.findings),
        *(use.file for use in session.other_uses),
    ]
    for file in files:
        if file is not None and not any(part in file for part in _LIBRARY_DIRECTORIES):
            yield file
