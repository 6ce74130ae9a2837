"""From which size on a table is worth a word about speed or memory."""

from __future__ import annotations

from collections.abc import Iterable

from pipediag.facts.limits import Threshold
from pipediag.session.embeddings import Embedding

LARGE = Threshold(
    "size of the table",
    10.0,
    "MB",
    "own measurements: at 100,000 rows of 64 (26 MB) Adam took 31 ms a step and SGD 7 ms; at 1,000 "
    "rows there was nothing to gain",
)


def large(tables: Iterable[Embedding]) -> list[Embedding]:
    """Those of at least that size."""
    return [table for table in tables if table.table_bytes >= LARGE.value * 1e6]
