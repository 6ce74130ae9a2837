"""The files of all tables: CSV for each, and Parquet for those that are large."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pipediag.reporters.tables import csv
from pipediag.reporters.tables.large import large_files
from pipediag.session.model import Session


def files(
    session: Session,
) -> Iterator[tuple[str, Callable[[], str] | bytes | None]]:
    """Each file's name and content; None for one that must not be there.

    Each CSV table is made on its own, so that an error in one costs no other.
    """
    for table in csv.tables(session):
        yield f"{table.name}.csv", partial(csv.as_text, table.columns, table.rows)
    yield from large_files(session)
