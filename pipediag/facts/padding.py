"""How much of what a model looks up is padding."""

from __future__ import annotations

from pipediag.session.embeddings import EmbeddingIds
from pipediag.session.model import Session


def padded_ids(session: Session) -> list[EmbeddingIds]:
    """Ids of the tables whose layer says which is padding; the most frequent one may be a token."""
    return [
        table.ids
        for table in session.embeddings
        if table.ids is not None and table.ids.padding_basis == "mask_zero"
    ]


def padded_percent(session: Session) -> float | None:
    """Padding among these ids, of all such tables together; None where no table says it."""
    known = padded_ids(session)
    lookups = sum(ids.lookups for ids in known)
    if not lookups:
        return None
    return sum((ids.padding_percent or 0.0) * ids.lookups for ids in known) / lookups
