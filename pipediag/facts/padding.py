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


def padding_percent(table: Embedding) -> float | None:
    """Return the share of the table's lookups that is padding, in percent.

    None where nothing says which id is padding: the model does by `mask_zero`, and the table of
    tokens in front does where it gives 0 for no token.
    """
    return table.ids.zero_percent if table.ids is not None and _zero_pads(table) else None


def padded_ids(session: Session) -> list[EmbeddingIds]:
    """Return the ids of the tables of which it is known which id is padding."""
    return [table.ids for table in session.embeddings if table.ids and _zero_pads(table)]


def padded_percent(session: Session) -> float | None:
    """Return the share of padding among these ids, of all such tables together, in percent."""
    known = padded_ids(session)
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
