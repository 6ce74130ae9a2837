"""A regulariser or a constraint that passes over a whole embedding table in every step."""

from __future__ import annotations

from pipediag.facts.embedding_cost import parts_ms
from pipediag.facts.limits import INPUT_BOUND, OPERATION_SHARE, Threshold
from pipediag.rules.embedding.computed_tables import computed_percent, judged_by_compute
from pipediag.rules.embedding.optimizer_arguments import updates_whole_tables
from pipediag.rules.embedding.sizes import LARGE, large, names_of
from pipediag.rules.model_edits import NO_MODEL_EDIT, without_table_terms
from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS, Scalar, TablePart

COMPUTE = Threshold(
    "device compute",
    30.0,
    "% of the step",
    "own choice: the passes are computed on the device, and below this even all of it gains "
    "little; it counts where the profile does not tell them apart",
)
META = Meta(
    id="regularized-table",
    name="Regularised table",
    title_failed="A regulariser or a constraint passes over a whole embedding table in every step",
    title_passed="Nothing is added to the loss or forced on the rows of a whole embedding table",
    looks_at="`embeddings_regularizer` and `embeddings_constraint` of each Embedding that is "
    "trained, and tensors of the table's size in the graph of the traced step.",
    why="A regulariser adds all rows to the loss, so that its gradient is as large as the table "
    "and no optimizer can update the batch's rows alone. A constraint changes all rows after each "
    "update. Both take time that grows with the table and not with the batch.",
    edit="`activity_regularizer` in place of `embeddings_regularizer`; no constraint, or one on "
    "the vectors that are looked up.",
    cost="Rows are shrunk as often as they are looked up: another objective, to be tuned again.",
    prediction="None: the step without them was not measured.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(LARGE, OPERATION_SHARE, COMPUTE, INPUT_BOUND),
    severity="warn",
    effect_on_results="changes a hyper-parameter",
    frees=("device_compute",),
)
_NOT_MEASURED = "The step without them was not measured."


def check(session: Session) -> list[Finding]:
    """One finding for each large table that has one, where the step shows it."""
    tables = [table for table in large(session.embeddings) if table.trainable]
    if not tables:
        return [META.finding("not-applicable", "The model trains no large embedding table.")]
    asked = [table for table in tables if table.regularizer or table.constraint]
    unread = [table for table in asked if table.update is None]
    if unread:
        reason = unread[0].missing or f"How {unread[0].layer} is updated was not seen."
        return [META.finding("inconclusive", reason, evidence={"layer": unread[0].layer})]
    found = [_finding(session, table) for table in asked if table.update == "dense"]
    return found or [META.finding("pass", "", evidence={"tables": len(tables)})]


def _finding(session: Session, table: Embedding) -> Finding:
    evidence = {**_evidence(table), "device_compute_percent": computed_percent(session)}
    return judged_by_compute(
        META,
        session,
        COMPUTE,
        f"{_advice(table)}{_and_rows(session)}",
        evidence,
        took_ms=parts_ms(session, [table], _parts(table)),
        missing=_NOT_MEASURED,
        edit=without_table_terms(session, META.id),
        untried=NO_MODEL_EDIT,
    )


def _and_rows(session: Session) -> str:
    """What else is needed, as the optimizer passes over the table, too."""
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None or not updates_whole_tables(loop.keras):
        return ""
    row_wise = ROW_WISE_OPTIMIZERS.get(loop.keras.optimizer or "")
    by = f"`pipediag.optimizers.{row_wise}`" if row_wise else "SGD"
    return f" {loop.keras.optimizer} passes over it, too: update its rows alone, by {by}."


def _parts(table: Embedding) -> tuple[TablePart, ...]:
    """What goes with it: without a regulariser, gradient and update may be the batch's rows'."""
    return ("regularizer", "gradient", "update") if table.regularizer else ("regularizer",)


def _advice(table: Embedding) -> str:
    said = []
    if table.regularizer:
        said.append(
            f"`embeddings_regularizer` ({table.regularizer}) adds all {table.rows} rows of "
            f"{names_of([table])} to the loss, which makes the gradient as large as the table. "
            "Give the layer `activity_regularizer` instead, which takes the rows of the batch "
            "alone, or leave it out."
        )
    if table.constraint:
        said.append(
            f"`embeddings_constraint` ({table.constraint}) changes all {table.rows} rows of "
            f"{names_of([table])} after each update. Leave it out, or hold the vectors to it that "
            "are looked up."
        )
    if table.temporary_bytes:
        made = table.temporary_bytes / 1e6
        said.append(
            f"With its update, the step makes {made:.0f} MB of tensors as large as the table."
        )
    return " ".join(said)


def _evidence(table: Embedding) -> dict[str, Scalar]:
    return {
        "layer": table.layer,
        "regularizer": table.regularizer,
        "constraint": table.constraint,
        "rows": table.rows,
        "rows_touched_per_step": table.rows_touched_per_step,
        "table_bytes": table.table_bytes,
        "temporary_bytes": table.temporary_bytes,
        "whole_table_operations": ", ".join(sorted(table.whole_table_operations)),
    }
