"""Which tables are also written as Parquet, and what their columns hold.

CSV names no types, and a hundred thousand rows of it take a program longer to read than to use.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pipediag.encoding.parquet import Kind, Value, can_write, is_ours, write_parquet
from pipediag.reporters.tables.csv import tables
from pipediag.session.files import replacing
from pipediag.session.model import Session

LARGE = 10_000
"""Rows from which on a table is written twice: a megabyte of CSV. Own choice."""

CAN_BE_LARGE = ("steps", "gaps", "host")
"""A row a step, a gap, a sample. All others have one for something that a person wrote."""

_WHOLE = frozenset(
    {"index", "block", "batches", "line", "step", "step_index", "rss_bytes", "available_bytes"}
)
_TEXT = frozenset(
    {
        "run_id",
        "window",
        "device",
        "device_kind",
        "host",
        "cause",
        "op_id",
        "file",
        "iterator",
        "doing",
    }
)


def large_files(session: Session) -> Iterator[tuple[str, bytes | None]]:
    """Name and content of each; None for one that is short, or where no writer is installed."""
    for table in tables(session):
        if table.name in CAN_BE_LARGE:
            rows = [[row.get(column) for column in table.columns] for row in table.rows]
            yield f"{table.name}.parquet", _content(table.columns, rows)


def write_large(
    path: Path, columns: Sequence[str], count: int, rows: Iterable[Sequence[Value]]
) -> bool:
    """Writes a table of `count` rows, whole or not at all; returns whether it is one to write.

    Raises:
        PipediagError: the file can't be written.
    """
    if not _is_written(count):
        withdraw(path)
        return False
    with replacing(path) as file:
        write_parquet(file, kinds_of(columns), rows)
    return True


def withdraw(path: Path) -> None:
    """Removes what an earlier report left: it would be another run's. Leaves a file of others."""
    if is_ours(path):
        with suppress(OSError):
            path.unlink()


def _content(columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> bytes | None:
    if not _is_written(len(rows)):
        return None
    stream = io.BytesIO()
    try:
        write_parquet(stream, kinds_of(columns), rows)
    except OverflowError:
        # Nobody measured that; the session is a stranger's. CSV has no such limit.
        return None
    return stream.getvalue()


def _is_written(count: int) -> bool:
    return count >= LARGE and can_write()


def kinds_of(columns: Sequence[str]) -> Mapping[str, Kind]:
    """What each column of a table of `CAN_BE_LARGE` holds, the same in every run."""
    return {column: _kind(column) for column in columns}


def _kind(column: str) -> Kind:
    if column in _WHOLE:
        return "whole"
    return "text" if column in _TEXT else "number"
