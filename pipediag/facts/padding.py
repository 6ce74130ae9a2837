"""How much of what a model looks up is padding, and whether a token is taken for it."""

from __future__ import annotations

from pipediag.facts.limits import Threshold
from pipediag.session.embeddings import Embedding, EmbeddingIds
from pipediag.session.model import Session

WITHIN = Threshold(
    "zeros between other ids",
    0.1,
    "% of the lookups",
    "own choice: padding stands at one end of a row, and a stray zero in a thousand may be meant",
)


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


def zeros_of_padding(session: Session) -> float | None:
    """Percent of lookups by an id 0 that is known to be padding, of all tables together of which
    that is known: one masks it, or the table of tokens in front gives it for no token."""
    known = [table.ids for table in session.embeddings if table.ids and _zero_pads(table)]
    lookups = sum(ids.lookups for ids in known)
    if not lookups:
        return None
    return sum((ids.zero_percent or 0.0) * ids.lookups for ids in known) / lookups


def _zero_pads(table: Embedding) -> bool:
    given_for_none = table.ids is not None and table.ids.zero_is_a_token is False
    return (table.mask_zero or given_for_none) and not masks_a_token(table)


def masks_a_token(table: Embedding) -> bool:
    """Whether the table masks id 0 although that stands for a token."""
    ids = table.ids
    if ids is None or not table.mask_zero:
        return False
    return bool(ids.zero_is_a_token) or within_percent(ids) >= WITHIN.value


def within_percent(ids: EmbeddingIds) -> float:
    """Share of the lookups by zeros that stand between other ids, where no padding is."""
    return 100.0 * ids.zeros_within / ids.lookups
