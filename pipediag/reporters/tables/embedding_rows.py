"""Embedding tables as rows."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.facts.embeddings import padding_percent, parts_ms
from pipediag.reporters.tables.device_rows import Row
from pipediag.session.embeddings import Embedding, EmbeddingIds
from pipediag.session.model import Session
from pipediag.vocabulary import TABLE_PARTS

EMBEDDING_COLUMNS = (
    "layer",
    "variable",
    "rows",
    "dim",
    "dtype",
    "table_bytes",
    "slots",
    "slot_bytes",
    "temporary_bytes",
    "device",
    "trainable",
    "gradient",
    "gradient_spread",
    "update",
    "read_whole_on_lookup",
    "copied_on_lookup",
    "copied_bytes_per_step",
    "regularizer",
    "constraint",
    "idle_slot_bytes",
    *(f"{part}_ms" for part in TABLE_PARTS),
    "lookup_places",
    "batches",
    "ids_dtype",
    "lookups_per_step",
    "unique_per_step",
    "smallest_id",
    "largest_id",
    "padding_percent",
    "out_of_vocabulary_percent",
    "hot_rows",
    "hot_percent",
    "hot_percent_ahead",
    "outside",
    "cast_through",
    "changed",
    "collided",
    "missing",
    "ids_missing",
    "ids_incomplete",
)


def embedding_rows(session: Session) -> Iterator[Row]:
    """One row a table, with what a few batches told of its ids."""
    for table in session.embeddings:
        row = {name: getattr(table, name) for name in EMBEDDING_COLUMNS if hasattr(table, name)}
        yield {
            **row,
            "lookup_places": table.lookups,
            "padding_percent": padding_percent(table),
            **_copied(table),
            **{f"{part}_ms": parts_ms(session, [table], [part]) for part in TABLE_PARTS},
            **_ids(table.ids),
        }


def _copied(table: Embedding) -> Row:
    """A lookup that reads the whole variable copies it only where rows are scattered into it."""
    copied = table.copied_bytes_per_step
    return {
        "read_whole_on_lookup": table.copied_on_lookup,
        "copied_on_lookup": None if copied is None else copied > 0,
    }


def _ids(ids: EmbeddingIds | None) -> Row:
    if ids is None:
        return {}
    row = {
        name: getattr(ids, name)
        for name in EMBEDDING_COLUMNS
        if hasattr(ids, name) and name != "dtype"
    }
    return {
        **row,
        "ids_dtype": ids.dtype,
        "ids_incomplete": ids.incomplete,
        "smallest_id": ids.smallest,
        "largest_id": ids.largest,
    }
