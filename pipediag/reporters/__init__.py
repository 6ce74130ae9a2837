"""Reports of a session for people and other programs: each is a function of it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.errors import PipediagError
from pipediag.session.files import SESSION_FILE, write_bytes

if TYPE_CHECKING:
    from pipediag.session.model import Session

Content = str | bytes

Reporter = Callable[["Session"], Iterator[tuple[str, Content | Callable[[], Content]]]]
"""Yield the name and the content of each file that the format consists of. A content may be a
function that makes it: if that fails, the files after it are written all the same."""

REPORTERS = {
    "html": "pipediag.reporters.html:files",
    "csv": "pipediag.reporters.tables:files",
    "json": "pipediag.reporters:session_file",
    "markdown": "pipediag.reporters.markdown:files",
}
"""The module and its function; templates and pandas are loaded only where they are needed."""

WRITTEN_BY_ANALYZE = ("html", "csv")
"""The session itself is written earlier, window by window, by whoever measures."""


def write_all(session: Session, directory: Path) -> list[Path]:
    """Write the report and the tables of a finished run; return the files.

    Raises:
        PipediagError: if any file could not be written, after all others were.
    """
    return write_formats(session, directory, WRITTEN_BY_ANALYZE)


def write_formats(session: Session, directory: Path, formats: Sequence[str]) -> list[Path]:
    """Write the named formats of `REPORTERS`; return the files, in that order.

    Raises:
        PipediagError: if any file could not be made or written, after all others were.
    """
    written: list[Path] = []
    failures: list[str] = []
    cause: Exception | None = None
    for name in formats:
        what = f"The {name} report"
        try:
            module, _, function = REPORTERS[name].partition(":")
            reporter: Reporter = getattr(import_module(module), function)
            for file, content in reporter(session):
                try:
                    made = content() if callable(content) else content
                    write_bytes(directory / file, made.encode() if isinstance(made, str) else made)
                    written.append(directory / file)
                except PipediagError as error:
                    failures.append(str(error))
                except Exception as error:  # noqa: BLE001 - one file must not cost the others
                    cause = cause or error
                    failures.append(failure_of(file, error))
        except Exception as error:  # noqa: BLE001 - one format must not cost the others
            cause = cause or error
            failures.append(failure_of(what, error))
    if failures:
        raise PipediagError("\n".join(failures)) from cause
    return written


def session_file(session: Session) -> Iterator[tuple[str, str]]:
    """Yield the session as JSON, from which all other reports can be made again."""
    from pipediag.session.record import to_json

    yield SESSION_FILE, to_json(session)


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
