"""Reports of a session for people and other programs: each is a function of it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.errors import PipediagError
from pipediag.session.files import SESSION_FILE, write_text

if TYPE_CHECKING:
    from pipediag.session.model import Session

REPORTERS = ("html", "csv", "json", "markdown")
_OF_ONE_FILE = {
    "html": ("report.html", "pipediag.reporters.html", "render"),
    "json": (SESSION_FILE, "pipediag.session.record", "to_json"),
    "markdown": ("report.md", "pipediag.reporters.markdown", "render"),
}
"""File, and module and function that make its text; templates are loaded only where needed."""


def write_all(session: Session, directory: Path) -> list[Path]:
    """Write the report and the tables of a finished run; return the files.

    The session itself is written earlier, window by window, by whoever measures.

    Raises PipediagError: if any file could not be written, after all others were.
    """
    return write_formats(session, directory, ("html", "csv"))


def write_formats(session: Session, directory: Path, formats: Sequence[str]) -> list[Path]:
    """Write the named formats of `REPORTERS`; return the files, in that order.

    Raises PipediagError: if any file could not be made or written, after all others were.
    """
    written: list[Path] = []
    failures: list[str] = []
    cause: Exception | None = None
    for file, make in (one for name in formats for one in _files(session, name)):
        try:
            write_text(directory / file, make())
            written.append(directory / file)
        except PipediagError as error:
            failures.append(str(error))
        except Exception as error:  # noqa: BLE001 - one file must not cost the others
            cause = cause or error
            failures.append(failure_of(file, error))
    if failures:
        raise PipediagError("\n".join(failures)) from cause
    return written


def _files(session: Session, name: str) -> Iterator[tuple[str, Callable[[], str]]]:
    if name in _OF_ONE_FILE:
        file, module, function = _OF_ONE_FILE[name]
        yield file, lambda: str(getattr(import_module(module), function)(session))
        return
    from pipediag.reporters import tables

    for table in tables.TABLES:
        yield f"{table}.csv", partial(tables.text, session, table)


def failure_of(what: str, error: Exception) -> str:
    """Return the sentence for an error of our own in making a report, with where it was raised."""
    from pipediag.encoding import one_line

    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" at {Path(frame.filename).name}:{frame.lineno}" for frame in last)
    message = one_line(f"{type(error).__name__}: {error}".rstrip(": "), 200)
    return (
        f"{what} could not be made ({message}{where}). This is an error in pipediag itself, "
        "please report it."
    )
