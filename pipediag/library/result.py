"""The result of an analysis: the session as text, tables, a page and files."""

from __future__ import annotations

from io import StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.store import load_session, save_session

if TYPE_CHECKING:
    import pandas

_WIDTH = 100
"""Columns of the summary, as notebooks and logs have no width."""


class Result:
    """A session with its tables and reports.

    It prints as the command's summary, without colours.

    Attributes:
        session: everything that was recorded, as listed in docs/session.md. What is not known is
            None, and `<name>_missing` next to it says why.
        directory: the directory of its report; None if none was written.
    """

    def __init__(self, session: Session, directory: Path | None) -> None:
        self.session = session
        self.directory = directory

    @property
    def verdict(self) -> str:
        """The verdict in one sentence; `session.verdict` has its parts."""
        return self.session.verdict.summary

    def table(self, name: str) -> pandas.DataFrame:
        """Return a table of the report by its name: `findings`, `pipeline`, `steps`, `run`, ...

        Raises:
            PipediagError: there is no such table.
        """
        from pipediag.reporters.tables import table

        return table(self.session, name)

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write session.json, report.html and the CSV files into a directory; return it.

        An earlier report is overwritten.

        Raises:
            PipediagError: something can't be written.
        """
        from pipediag.reporters import write_all

        target = Path(directory)
        save_session(self.session, target / SESSION_FILE)
        write_all(self.session, target)
        return target

    def __repr__(self) -> str:
        from rich.console import Console

        from pipediag.reporters.terminal.summary import render

        stream = StringIO()
        console = Console(
            file=stream,
            width=_WIDTH,
            color_system=None,
            force_terminal=False,
            # Otherwise rich shows the text in the notebook itself, and returns none.
            force_jupyter=False,
            legacy_windows=False,
        )
        render(self.session, console, output_directory=self.directory)
        return stream.getvalue().rstrip("\n")


def load(path: str | PathLike[str]) -> Result:
    """Read a recorded session: a `session.json`, or the directory that `pipediag analyze` wrote.

    TensorFlow is not needed, and not imported.

    Raises:
        PipediagError: it can't be read, is not a session, or has another schema version.
    """
    place = Path(path)
    session = load_session(place)
    directory = place if place.is_dir() else place.parent
    return Result(session, directory)
