"""What an analysis gives to a program: the session, as sentences, tables, a page and files."""

from __future__ import annotations

import shutil
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.errors import PipediagError
from pipediag.library.own_directory import OwnDirectory
from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.settings import TRACE_DIRECTORY
from pipediag.session.store import load_session, save_session

if TYPE_CHECKING:
    import pandas

_WIDTH = 100
"""Characters of a line: notebooks and logs have no width of their own to ask for."""


class Result:
    """A session, and what can be made of it.

    It prints as the summary that the command shows, without colours; a notebook shows the first
    screen of the report.

    Attributes:
        session: all that was recorded, as docs/session.md lists it; None is what is not known, and
            `<name>_missing` beside it says why.
        directory: where its report is; None where none was written.
    """

    def __init__(
        self,
        session: Session,
        directory: Path | None,
        *,
        measured_in: OwnDirectory | None = None,
    ) -> None:
        self.session = session
        self.directory = directory
        self._measured_in = measured_in
        """Kept for as long as the result is, for the sake of the raw profile."""

    @property
    def verdict(self) -> str:
        """The verdict in one sentence; `session.verdict` has its parts."""
        return self.session.verdict.summary

    @property
    def findings(self) -> pandas.DataFrame:
        """What each rule found, in the order in which to deal with it: `findings.csv`."""
        return self.table("findings")

    @property
    def steps(self) -> pandas.DataFrame:
        """Every recorded step of the diagnosed loop: `steps.csv`, in milliseconds."""
        return self.table("steps")

    @property
    def operations(self) -> pandas.DataFrame:
        """The operations of the input pipeline: `pipeline.csv`, in milliseconds of a step."""
        return self.table("pipeline")

    def table(self, name: str) -> pandas.DataFrame:
        """Any table of the report by its file's name, such as `run`, `trials` or `gaps`.

        Raises:
            PipediagError: there is no such table, or pandas is not installed.
        """
        from pipediag.library.frames import frame

        return frame(self.session, name)

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write session.json, report.html and the CSV files into a directory; return it.

        The raw profile is copied along where there is one. An earlier report is written over.

        Raises:
            PipediagError: something can't be written.
        """
        from pipediag.reporters import write_all

        target = Path(directory)
        _make(target)
        save_session(self.session, target / SESSION_FILE)
        write_all(self.session, target)
        self._copy_trace(target)
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
            # Else a notebook is shown the text by itself, beside the page, and none is returned.
            force_jupyter=False,
            legacy_windows=False,
        )
        render(self.session, console, output_directory=self.directory)
        return stream.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        from pipediag.reporters.html.fragment import render

        return render(self.session)

    def _copy_trace(self, target: Path) -> None:
        place = Path(self._measured_in.name) if self._measured_in is not None else self.directory
        if place is None or target.resolve() == place.resolve():
            return
        trace, copy = place / TRACE_DIRECTORY, target / TRACE_DIRECTORY
        if not trace.is_dir():
            return
        try:
            shutil.copytree(trace, copy, dirs_exist_ok=True)
        except (OSError, shutil.Error) as error:
            raise PipediagError(
                f"the report is in {target}, but the raw profile could not be copied there: "
                f"{error}. It still is in {trace}."
            ) from error


def load(path: str | PathLike[str]) -> Result:
    """Read a recorded session: a `session.json`, or the directory that `pipediag analyze` wrote.

    TensorFlow is not needed, and not imported.

    Raises:
        PipediagError: it can't be read, is no session, or is of another schema version.
    """
    place = Path(path)
    session = load_session(place)
    directory = place if place.is_dir() else place.parent
    return Result(session, directory)


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PipediagError(
            f"cannot write to {directory}: {error.strerror}. Choose another directory."
        ) from error
