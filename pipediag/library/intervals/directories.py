"""Where the sessions of one training go, one directory for each, and the list of them."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

from pipediag.encoding.csv import TableWriter, Value
from pipediag.errors import PipediagError
from pipediag.library.exports.figures import FIGURES, figures_of
from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.settings import TRACE_DIRECTORY

INDEX_FILE = "intervals.csv"
_NAME = re.compile(r"interval-([1-9]\d*)", re.ASCII)
_ABOUT = ("interval", "created_at", "directory", "bottleneck", "severity", "summary")
_COLUMNS = (*_ABOUT, *(figure.key for figure in FIGURES))


class Directories:
    """`interval-1`, `interval-2`, ... in one directory, or none of them.

    Numbers go on behind those that are there: a job that was begun again is the same training.

    Raises:
        PipediagError: the directory holds the report of something else.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._number = 0
        if root is None:
            return
        if (root / SESSION_FILE).exists():
            raise PipediagError(
                f"{root} holds the report of a single measurement, among which the intervals would "
                "not be found. Nothing is measured. Choose another directory with `out`."
            )
        found = [_NAME.fullmatch(path.name) for path in root.glob("interval-*")]
        self._number = max((int(name[1]) for name in found if name is not None), default=0)

    def next(self) -> tuple[int, Path | None]:
        """The number of the next one, and where it goes."""
        self._number += 1
        return self._number, self._of(self._number)

    def given_up(self, number: int) -> None:
        """That one came to nothing, so that another one may have its number."""
        self._number = number - 1

    def add(self, session: Session, number: int) -> None:
        """Enter it in the list; of raw profiles the last one is kept, as they are large.

        Raises:
            OSError: it can't be written.
        """
        if self._root is None:
            return
        earlier = self._of(number - 1)
        if earlier is not None:
            shutil.rmtree(earlier / TRACE_DIRECTORY, ignore_errors=True)
        index = self._root / INDEX_FILE
        text = io.StringIO()
        TableWriter(text, _COLUMNS).writerows([_row(session, number)])
        header, _, row = text.getvalue().partition("\n")
        with index.open("a", encoding="utf-8") as file:
            file.write(row if file.tell() else f"{header}\n{row}")

    def _of(self, number: int) -> Path | None:
        return None if self._root is None else self._root / f"interval-{number}"


def _row(session: Session, number: int) -> list[Value]:
    verdict = session.verdict
    figures = figures_of(session)
    return [
        number,
        session.created_at,
        f"interval-{number}",
        verdict.bottleneck,
        verdict.severity,
        verdict.summary,
        *(figures.get(figure.key) for figure in FIGURES),
    ]
