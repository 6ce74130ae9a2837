"""Sessions with one embedding whose ids were looked at."""

from __future__ import annotations

from typing import Any

from pipediag.session.embeddings import EmbeddingIds
from pipediag.session.model import Session
from tests.factories import make_embedding, make_session


def make_ids(**overrides: Any) -> EmbeddingIds:
    values: dict[str, Any] = {
        "batches": 8,
        "first_batch": 41,
        "last_batch": 48,
        "dtype": "int64",
        "lookups": 8_000,
        "lookups_per_step": 1_000.0,
        "unique": 900,
        "unique_per_step": 400.0,
        "smallest": 0,
        "largest": 999,
        "hot_rows": 10,
        "hot_percent": 30.0,
        "hot_percent_ahead": 25.0,
        "zero_percent": 10.0,
    }
    return EmbeddingIds(**{**values, **overrides})


def looked_at(table: dict[str, Any] | None = None, **ids: Any) -> Session:
    """A session with a table of 1,000 rows."""
    return make_session(embeddings=[make_embedding(**(table or {}), ids=make_ids(**ids))])


def unseen(**table: Any) -> Session:
    """One whose ids could not be had."""
    return make_session(embeddings=[make_embedding(**{"ids_missing": "A loop.", **table})])
