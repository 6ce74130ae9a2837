"""Cells of tables that a spreadsheet shows and does not compute."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from pipediag.encoding.visible import visible_start

Value = int | float | str | bool | None

LONGEST_CELL = 32_000
"""Characters; spreadsheets hold 32,767."""

_FORMULA = re.compile(r"""[\s"'`]*[=+\-@\uff1d\uff0b\uff0d\uff20]""")
"""What begins a formula, in full width too, also behind blanks and quotes, which an import may
strip."""


class Stream(Protocol):
    def write(self, text: str, /) -> object: ...


class TableWriter:
    """Writes rows: a text that would begin a formula comes behind an apostrophe.

    Numbers are written as they are, negative ones too.
    """

    def __init__(self, stream: Stream, columns: Iterable[str]) -> None:
        self._writer = csv.writer(stream, lineterminator="\n")
        self._writer.writerow(columns)

    def writerows(self, rows: Iterable[Iterable[Value]]) -> None:
        """Writes each row's cells, in the order of the columns."""
        self._writer.writerows([_cell(value) for value in row] for row in rows)


def _cell(value: Value) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else value


@lru_cache(maxsize=1024)
def _text(text: str) -> str:
    shown = visible_start(text[: LONGEST_CELL + 1].replace("\t", " "), LONGEST_CELL)
    return f"'{shown}" if _FORMULA.match(shown) or text[:1] in ("\t", "\r") else shown
