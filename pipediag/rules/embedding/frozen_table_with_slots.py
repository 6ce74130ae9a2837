"""An embedding table that is not trained, for which the optimizer keeps its slots all the same."""

from __future__ import annotations

from pipediag.facts.table_sizes import LARGE, large
from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding
from pipediag.session.findings import Finding
from pipediag.session.model import Session

META = Meta(
    id="frozen-table-with-slots",
    name="Frozen table with slots",
    title_failed="The optimizer keeps slots for an embedding table that is not trained",
    title_passed="No optimizer keeps slots for an embedding table that is not trained",
    looks_at="Embeddings with `trainable=False`, and the variables of the optimizer that were made "
    "for them.",
    why="A Keras optimizer makes its slots for what is trainable when it is built, and keeps them "
    "when a layer is frozen later: memory, and a part of each checkpoint, for nothing.",
    edit="A new optimizer in the `compile` that follows the freezing.",
    cost="The new optimizer starts from moments of zero, for the other layers too.",
    bound="None: it is about memory, not about speed.",
    needs=("loop",),
    thresholds=(LARGE,),
    severity="info",
    effect_on_results="changes a hyper-parameter",
    untried="It is about memory, which a trial of speed can't tell.",
)


def check(session: Session) -> list[Finding]:
    """One finding for each such table whose slots are large; it informs, as no time is lost."""
    frozen = [table for table in large(session.embeddings) if not table.trainable]
    if not frozen:
        return [META.finding("not-applicable", "The model has no large table that is frozen.")]
    kept = [table for table in frozen if (table.idle_slot_bytes or 0) >= LARGE.value * 1e6]
    if kept:
        return [_finding(table) for table in kept]
    unknown = [table for table in frozen if table.idle_slot_bytes is None]
    if unknown:
        reason = f"What the optimizer keeps for {unknown[0].layer} is not known."
        return [META.finding("inconclusive", reason, evidence={"layer": unknown[0].layer})]
    return [META.finding("pass", "", evidence={"tables": len(frozen)})]


def _finding(table: Embedding) -> Finding:
    slots = table.idle_slot_bytes or 0
    return META.finding(
        "informative",
        f"`{table.layer}` is not trained, and the optimizer still holds {slots / 1e6:.0f} MB for "
        "it, which every checkpoint of it holds as well: it was built before the layer was frozen. "
        "Call `compile` with a new optimizer after `trainable = False`.",
        evidence={
            "layer": table.layer,
            "rows": table.rows,
            "table_bytes": table.table_bytes,
            "idle_slot_bytes": slots,
        },
    )
