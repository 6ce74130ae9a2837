"""Tables in sentences, and what a row of them takes."""

from __future__ import annotations

from pipediag.session.embeddings import Embedding


def names_of(tables: list[Embedding]) -> str:
    """The first of them, for a sentence."""
    names = ", ".join(f"`{table.layer}`" for table in tables[:3])
    return names + (f" and {len(tables) - 3} more" if len(tables) > 3 else "")


def vector_bytes(table: Embedding) -> int:
    """Of one row."""
    return table.table_bytes // max(1, table.rows)
