"""An optimizer that updates a whole embedding table for the few rows a step touches."""

from __future__ import annotations

from pipediag.facts.limits import Threshold
from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding
from pipediag.session.findings import Finding
from pipediag.session.model import Session

TABLE = Threshold(
    "size of the table",
    10.0,
    "MB",
    "own measurements: at 100,000 rows of 64 (26 MB) Adam took 31 ms a step and SGD 7 ms; at 1,000 "
    "rows there was nothing to gain",
)
META = Meta(
    id="dense-embedding-update",
    name="Dense update of an embedding",
    title_failed="The optimizer rewrites a whole embedding table in every step",
    title_passed="Embedding tables are updated where they are touched",
    looks_at="Embedding tables whose update is dense, their size with the optimizer's slots, and "
    "the rows that a step touches.",
    why="Adam, RMSprop and momentum keep moving averages of every row, so each step reads and "
    "writes table and slots in full, with time that grows with the table and not with the batch.",
    edit="A second optimizer for the table (SGD keeps its updates sparse), or a row-wise Adam.",
    cost="Rows are no longer updated in steps that don't touch them: another optimisation, to be "
    "tuned again.",
    prediction="None: the sparse update was not measured.",
    needs=("loop",),
    thresholds=(TABLE,),
    severity="info",
    effect_on_results="changes a hyper-parameter",
    untried="It needs another optimizer for the table, with other slots; no setting of a compiled "
    "model does that.",
)

_DENSE_OPTIMIZERS = ("Adam", "AdamW", "Adamax", "Nadam", "RMSprop", "Lion", "Adadelta", "Ftrl")


def check(session: Session) -> list[Finding]:
    """One informative finding for each large table with a dense update."""
    tables = [table for table in session.embeddings if table.trainable]
    if not tables:
        return [META.finding("not-applicable", "The model has no trainable embedding table.")]
    large = [table for table in tables if _is_large(table)]
    dense = [table for table in large if _update(session, table) == "dense"]
    if dense:
        return [_finding(session, table) for table in dense]
    unknown = [table for table in large if _update(session, table) is None]
    if unknown:
        reason = unknown[0].missing or f"How {unknown[0].layer} is updated was not seen."
        return [META.finding("inconclusive", reason, evidence={"layer": unknown[0].layer})]
    return [META.finding("pass", "", evidence={"tables": len(tables)})]


def _is_large(table: Embedding) -> bool:
    return table.table_bytes >= TABLE.value * 1e6


def _update(session: Session, table: Embedding) -> str | None:
    """How the table is updated: as it was seen, else as its optimizer does it."""
    if table.update is not None:
        return table.update
    if _optimizer(session) in _DENSE_OPTIMIZERS:
        return "dense"
    # SGD without momentum, which would be a slot, scatters into the rows that were touched.
    return "sparse" if _optimizer(session) == "SGD" and table.slot_bytes == 0 else None


def _optimizer(session: Session) -> str | None:
    loop = session.diagnosed_loop()
    return loop.keras.optimizer if loop and loop.keras else None


def _finding(session: Session, table: Embedding) -> Finding:
    optimizer = _optimizer(session) or "The optimizer"
    moved = (table.table_bytes + (table.slot_bytes or 0)) / 1e6
    return META.finding(
        "informative",
        f"{optimizer} reads and writes all {table.rows} rows of `{table.layer}` in each step "
        f"({moved:.0f} MB with its slots). Where the step is bound by compute, update the table "
        "with SGD or a row-wise Adam.",
        evidence={
            "layer": table.layer,
            "update_known_from": "the run" if table.update else "the optimizer class",
            "rows": table.rows,
            "rows_touched_per_step": table.rows_touched_per_step,
            "table_bytes": table.table_bytes,
            "slot_bytes": table.slot_bytes,
        },
    )
