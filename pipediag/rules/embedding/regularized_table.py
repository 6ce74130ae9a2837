"""A regulariser or a constraint that passes over a whole embedding table in every step."""

from __future__ import annotations

from collections.abc import Iterable

from pipediag.facts.embedding_cost import parts_ms
from pipediag.facts.limits import INPUT_BOUND, OPERATION_SHARE, Threshold
from pipediag.facts.table_sizes import LARGE, large
from pipediag.rules.embedding.computed_tables import computed_percent, judged_by_compute
from pipediag.rules.embedding.optimizer_arguments import updates_whole_tables
from pipediag.rules.embedding.sizes import names_of
from pipediag.rules.model_edits import no_optimizer_edit, no_row_wise, without_table_terms
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
    bound="None: the step without them was not measured.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(LARGE, OPERATION_SHARE, COMPUTE, INPUT_BOUND),
    severity="warn",
    effect_on_results="changes a hyper-parameter",
    frees=("device_compute",),
    tried_when_informing=True,
)


def check(session: Session) -> list[Finding]:
    """One finding on all large tables that have one, as one edit takes it from them all."""
    tables = [table for table in large(session.embeddings) if table.trainable]
    if not tables:
        return [META.finding("not-applicable", "The model trains no large embedding table.")]
    asked = [table for table in tables if table.regularizer or table.constraint]
    unread = [table for table in asked if table.update is None]
    if unread:
        reason = unread[0].missing or f"How {unread[0].layer} is updated was not seen."
        return [META.finding("inconclusive", reason, evidence={"layer": unread[0].layer})]
    passed_over = [table for table in asked if table.update == "dense"]
    if passed_over:
        return [_finding(session, passed_over)]
    return [META.finding("pass", "", evidence={"tables": len(tables)})]


def _finding(session: Session, tables: list[Embedding]) -> Finding:
    evidence = {**_evidence(tables), "device_compute_percent": computed_percent(session)}
    return judged_by_compute(
        META,
        session,
        COMPUTE,
        f"{_advice(tables)}{_and_rows(session, tables)}",
        evidence,
        took_ms=_took_ms(session, tables),
        edit=without_table_terms(session, META.id),
        place=_made_at(tables),
        untried=no_optimizer_edit(session),
    )


def _made_at(tables: list[Embedding]) -> tuple[str, int] | None:
    """Where the script gave the largest of those whose line is known its term."""
    known = ((one.file, one.line) for one in tables if one.file is not None)
    return next(((file, line) for file, line in known if line is not None), None)


def _took_ms(session: Session, tables: list[Embedding]) -> float | None:
    """Of a step, in what goes with them; None where one's was not told."""
    told = [parts_ms(session, [table], _parts(table)) for table in tables]
    known = [one for one in told if one is not None]
    return sum(known) if len(known) == len(told) else None


def _and_rows(session: Session, tables: list[Embedding]) -> str:
    """What else is needed, as the optimizer passes over the tables, too."""
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None or not updates_whole_tables(loop.keras):
        return ""
    tried = no_row_wise(session) is None
    row_wise = ROW_WISE_OPTIMIZERS.get(loop.keras.optimizer or "") if tried else None
    by = f"`pipediag.optimizers.{row_wise}`" if row_wise else "SGD without momentum"
    them, their = ("it", "its") if len(tables) == 1 else ("them", "their")
    return f" {loop.keras.optimizer} passes over {them}, too: update {their} rows alone, by {by}."


def _parts(table: Embedding) -> tuple[TablePart, ...]:
    """What goes with it: without a regulariser, gradient and update may be the batch's rows'."""
    return ("regularizer", "gradient", "update") if table.regularizer else ("regularizer",)


def _advice(tables: list[Embedding]) -> str:
    said = []
    if regularized := [table for table in tables if table.regularizer]:
        alone = len(regularized) == 1
        said.append(
            f"Give {names_of(regularized)} `activity_regularizer` in place of "
            "`embeddings_regularizer`, or neither. "
            f"The latter ({_classes(one.regularizer for one in regularized)}) adds all "
            f"{_rows(regularized)} rows to the loss, which makes "
            f"{'the gradient' if alone else 'their gradients'} as large as the "
            f"{'table' if alone else 'tables'}; the former takes the rows of the batch alone."
        )
    if constrained := [table for table in tables if table.constraint]:
        said.append(
            f"Leave `embeddings_constraint` ({_classes(one.constraint for one in constrained)}) of "
            f"{names_of(constrained)} out, or hold the vectors to it that are looked up. It "
            f"changes all {_rows(constrained)} rows after each update."
        )
    if made := sum(table.temporary_bytes or 0 for table in tables) / 1e6:
        one = len(tables) == 1
        said.append(
            f"With {'its update' if one else 'their updates'}, the step makes {made:.0f} MB of "
            f"tensors as large as the {'table' if one else 'tables'}."
        )
    return " ".join(said)


def _classes(names: Iterable[str | None]) -> str:
    return ", ".join(sorted({name for name in names if name}))


def _rows(tables: list[Embedding]) -> int:
    return sum(table.rows for table in tables)


def _evidence(tables: list[Embedding]) -> dict[str, Scalar]:
    touched = [table.rows_touched_per_step for table in tables]
    known = [one for one in touched if one is not None]
    made = [table.temporary_bytes for table in tables if table.temporary_bytes is not None]
    operations = {name for table in tables for name in table.whole_table_operations}
    return {
        "layer": ", ".join(table.layer for table in tables),
        "tables": len(tables),
        "regularizer": _classes(table.regularizer for table in tables) or None,
        "constraint": _classes(table.constraint for table in tables) or None,
        "rows": _rows(tables),
        "rows_touched_per_step": sum(known) if len(known) == len(touched) else None,
        "table_bytes": sum(table.table_bytes for table in tables),
        "temporary_bytes": sum(made) if made else None,
        "whole_table_operations": ", ".join(sorted(operations)),
    }
