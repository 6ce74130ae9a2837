"""A token that is masked as if it were padding: id 0 under `mask_zero`."""

from __future__ import annotations

from pipediag.facts.padding import WITHIN, masks_a_token, within_percent
from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding, EmbeddingIds
from pipediag.session.findings import Finding
from pipediag.session.model import Session

META = Meta(
    id="masked-token",
    name="Masked token",
    title_failed="`mask_zero` hides a token that stands for something",
    title_passed="Id 0 is padding wherever it is masked",
    looks_at="Embeddings with `mask_zero=True`: whether the table of tokens in front gives 0 for a "
    "token, and whether zeros stand between other ids of a row.",
    why="Layers behind the Embedding skip what is masked, so the token with id 0 is never seen.",
    edit="Ids from 1 on, `input_dim` one larger; or a `mask_token` in the lookup layer.",
    cost="One more row.",
    bound="None: it is about results, not about speed.",
    needs=("loop",),
    thresholds=(WITHIN,),
    severity="error",
    effect_on_results="mends results",
    subject="correctness",
    untried="It is about what the model learns, which a trial of speed can't tell.",
)


def check(session: Session) -> list[Finding]:
    """One finding for each table whose zeros are no padding."""
    masked = [table for table in session.embeddings if table.mask_zero]
    if not masked:
        return [META.finding("not-applicable", "No embedding masks id 0.")]
    seen = [(table, table.ids) for table in masked if table.ids is not None]
    if not seen:
        return [META.finding("inconclusive", masked[0].ids_missing or "No batch was looked at.")]
    found = [_finding(table, ids) for table, ids in seen if masks_a_token(table)]
    return found or [META.finding("pass", "", evidence={"tables": len(seen)})]


def _finding(table: Embedding, ids: EmbeddingIds) -> Finding:
    if ids.zero_is_a_token:
        why = (
            f"Give the lookup layer in front of `{table.layer}` a `mask_token`, or leave "
            "`mask_zero` out. As it is, it gives 0 for a token, and `mask_zero` hides it."
        )
    else:
        why = (
            "Let ids of tokens begin with 1, or leave `mask_zero` out. "
            f"{ids.zeros_within} zeros of {ids.lookups} ids of `{table.layer}` stand between other "
            "ids of their row, where no padding is, and `mask_zero` hides them."
        )
    return META.finding(
        "fail",
        why,
        evidence={
            "layer": table.layer,
            "zero_percent": ids.zero_percent,
            "zeros_within": ids.zeros_within,
            "zeros_within_percent": within_percent(ids),
            "zero_is_a_token": ids.zero_is_a_token,
            "batches": ids.batches,
        },
    )
