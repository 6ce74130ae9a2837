"""Embedding tables in words, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.facts.embeddings import large, masks_a_token, padding_percent
from pipediag.reporters.words.quantities import NOTHING, number, percent
from pipediag.session.embeddings import Embedding, EmbeddingIds


def come_first(tables: Sequence[Embedding]) -> bool:
    """Whether they are what somebody who trains them reads first: they are large, or looked up by
    wrong ids."""
    return bool(large(tables)) or any(wrong(table) for table in tables)


def gradient(table: Embedding) -> str:
    """`sparse`, or `sparse, made dense` where rows are spread over the whole table."""
    if table.gradient is None:
        return "frozen" if not table.trainable else NOTHING
    return "sparse, made dense" if table.gradient_spread else table.gradient


def update(table: Embedding) -> str:
    """What the optimizer passes over."""
    return {"dense": "whole table", "sparse": "its rows", None: NOTHING}[table.update]


def rows_touched(table: Embedding) -> str:
    """Different rows of the lookups of a step: `2,431 of 2,560`."""
    if table.ids is None:
        return NOTHING
    return f"{number(round(table.ids.unique_per_step))} of {_rounded(table.ids.lookups_per_step)}"


def padding(table: Embedding) -> str:
    """Return the share of padding, where it is known which id that is."""
    share = padding_percent(table)
    return NOTHING if share is None else percent(share)


def hot(ids: EmbeddingIds | None) -> str:
    """What the hottest rows would take of batches to come, where two batches were seen."""
    if ids is None:
        return NOTHING
    return percent(ids.hot_percent if ids.hot_percent_ahead is None else ids.hot_percent_ahead)


def details(table: Embedding) -> str:
    """Gradient, and what of its lookups is padding or goes to the hottest rows; as far as known."""
    known = {
        "gradient": gradient(table),
        "hottest 1 %": hot(table.ids),
        "padding": padding(table),
    }
    return "; ".join(f"{name} {said}" for name, said in known.items() if said != NOTHING)


def looked_at(ids: EmbeddingIds) -> str:
    """Which batches the figures are from."""
    batches = "1 batch" if ids.batches == 1 else f"{ids.batches} batches"
    return f"{batches}, {number(ids.first_batch)} to {number(ids.last_batch)}"


def wrong(table: Embedding) -> list[str]:
    """What of its ids spoils results, in a few words each; the findings say what to do."""
    ids, said = table.ids, []
    if ids is not None and ids.outside:
        said.append(f"{_share(ids.outside, ids)} of the ids have no row")
    if ids is not None and ids.changed:
        said.append(f"{_share(ids.changed, ids)} of the ids are rounded by {ids.cast_through}")
    if masks_a_token(table):
        said.append("id 0 is masked, and is a token")
    return said


def _share(part: int, ids: EmbeddingIds) -> str:
    return percent(100.0 * part / ids.lookups)


def _rounded(value: float) -> str:
    return number(round(value))
