"""The files of all tables: CSV for each, and Parquet for those that are large."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.reporters.tables import csv
from pipediag.reporters.tables.large import large_files
from pipediag.session.model import Session


def files(session: Session) -> Iterator[tuple[str, str | bytes | None]]:
    """Each file's name and content; None for one that must not be there."""
    yield from csv.files(session)
    yield from large_files(session)
