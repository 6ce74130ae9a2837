"""A whole embedding table updated for the few rows that a step looks up."""

from __future__ import annotations

from dataclasses import replace

from pipediag.facts.embedding_cost import parts_ms, percent_of_step
from pipediag.facts.limits import INPUT_BOUND, OPERATION_SHARE, Threshold
from pipediag.facts.table_sizes import LARGE, large
from pipediag.rules.embedding.computed_tables import computed_percent, judged_by_compute
from pipediag.rules.embedding.optimizer_arguments import arguments_named, to_add, to_drop
from pipediag.rules.embedding.sizes import names_of
from pipediag.rules.model_edits import (
    no_optimizer_edit,
    no_row_wise,
    row_wise_update,
    sgd_for_tables,
)
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, SetModel
from pipediag.session.embeddings import Embedding
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS, Scalar, TablePart

COMPUTE = Threshold(
    "device compute",
    30.0,
    "% of the step",
    "own choice: the update is computed on the device, and below this even all of it gains little; "
    "it counts where the profile does not tell the update apart",
)
COSTLY = Threshold(
    "size of the tables, where the profile finds their update to matter",
    5.0,
    "MB",
    "own measurements: of 10,000 rows of 64 (2.6 MB) a row-wise Adam made steps 1.00 to 1.05 times "
    "as fast, of 100,000 (26 MB) 3 times",
)
META = Meta(
    id="dense-embedding-update",
    name="Dense update of an embedding",
    title_failed="The optimizer rewrites a whole embedding table in every step",
    title_passed="Embedding tables are updated where they are touched",
    looks_at="The graph of the traced step: whether the gradient of a table comes as rows, and "
    "whether the step makes tensors of the table's size or writes it, or its slots, in full; and "
    "what gradient and update of the table take in the profile.",
    why="Adam, RMSprop, momentum and others keep moving averages of every row, and a weight decay, "
    "an average of the weights or a norm over all gradients passes over every row too: each step "
    "then reads and writes the table several times, in time that grows with the table and not with "
    "the batch.",
    edit="A row-wise Adam, as `pipediag.optimizers.LazyAdam`; or SGD without momentum for "
    "the tables alone.",
    cost="Rows are no longer updated in steps that don't look them up: another optimisation, to be "
    "tuned again. SGD also takes steps of one length for rare rows and frequent ones, and needs a "
    "learning rate of its own.",
    bound="None: the sparse update was not measured. At most what gradient and update of the "
    "tables take is saved.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(LARGE, COSTLY, OPERATION_SHARE, COMPUTE, INPUT_BOUND),
    severity="warn",
    effect_on_results="changes a hyper-parameter",
    frees=("device_compute",),
    tried_when_informing=True,
    tried_where="SGD for the tables alone is tried where the row-wise optimizer is not confirmed, "
    "or where there is none.",
)
_PARTS: tuple[TablePart, ...] = ("gradient", "update")
_ROW_WISE_IN_A_LOOP = (
    "Make the optimizer of your loop a row-wise one, which updates only the rows that are looked "
    "up: `pipediag.optimizers` has such for the common rules of Keras."
)
_SGD_TOO = " SGD without momentum, weight decay or a norm over all gradients does so, too."
_BY_SGD = "SGD for embeddings alone is another way to update rows only"
_SMALL = "Embedding tables that are updated as a whole are small"
_LITTLE = "To update whole embedding tables takes little of the step"


def check(session: Session) -> list[Finding]:
    """One finding on all tables whose update matters, as one optimizer updates them all; a second
    one where there is another way than the row-wise one to try."""
    tables = [table for table in session.embeddings if table.trainable]
    if not tables:
        return [META.finding("not-applicable", "The model has no trainable embedding table.")]
    whole = [table for table in tables if table.update == "dense"]
    from_rows = [table for table in whole if table.gradient == "sparse"]
    if _matter(session, from_rows):
        found = _finding(session, from_rows)
        return [found, *_by_sgd(session, found, from_rows)]
    if _matter(session, whole):
        return [_dense_gradient(whole[0])]
    unknown = [table for table in large(tables) if table.update is None]
    if unknown:
        reason = unknown[0].missing or f"How {unknown[0].layer} is updated was not seen."
        return [META.finding("inconclusive", reason, evidence={"layer": unknown[0].layer})]
    edit = row_wise_update(session, META.id)
    if from_rows and edit is not None:
        return [_of_small(session, from_rows, edit)]
    return [_pass(session, tables, whole)]


def _matter(session: Session, whole: list[Embedding]) -> bool:
    """Whether the tables that are updated as a whole are worth a word, all together."""
    took = _took_percent(session, whole)
    least = COSTLY if took is not None and took >= OPERATION_SHARE.value else LARGE
    return sum(table.table_bytes for table in whole) >= least.value * 1e6


def _took_percent(session: Session, whole: list[Embedding]) -> float | None:
    return percent_of_step(session, parts_ms(session, whole, _PARTS))


def _of_small(session: Session, tables: list[Embedding], edit: Edit) -> Finding:
    """Return what is tried last: the tables are small, and only a trial tells what that means."""
    took = _took_percent(session, tables)
    little = took is not None and took < OPERATION_SHARE.value
    known: dict[str, Scalar] = {} if took is None else {"took_percent_of_step": took}
    return META.finding(
        "informative",
        _advice(session, tables, edit),
        evidence={**_evidence(tables), **known},
        title=_LITTLE if little else _SMALL,
        edit=edit,
    )


def _pass(session: Session, tables: list[Embedding], whole: list[Embedding]) -> Finding:
    """It says so where small tables are updated as a whole."""
    evidence: dict[str, Scalar] = {"tables": len(tables)}
    if not whole:
        return META.finding("pass", "", evidence=evidence)
    took = _took_percent(session, whole)
    if took is not None:
        evidence["took_percent_of_step"] = took
    little = took is not None and took < OPERATION_SHARE.value
    return META.finding("pass", "", evidence=evidence, title=_LITTLE if little else _SMALL)


def _finding(session: Session, tables: list[Embedding]) -> Finding:
    edit = row_wise_update(session, META.id)
    return judged_by_compute(
        META,
        session,
        COMPUTE,
        _advice(session, tables, edit),
        {
            **_evidence(tables),
            "device_compute_percent": computed_percent(session),
            "optimizer_arguments": arguments_named(session),
        },
        took_ms=parts_ms(session, tables, _PARTS),
        edit=edit,
        untried=no_optimizer_edit(session),
    )


def _by_sgd(session: Session, found: Finding, tables: list[Embedding]) -> list[Finding]:
    """The tables updated by SGD, where something else is tried before that."""
    edit = sgd_for_tables(session, f"{META.id}:sgd")
    if found.edit is None or edit is None or found.edit.changes == edit.changes:
        return []
    edit = replace(edit, instead_of=found.edit.id)
    finding = META.finding(
        "informative",
        f"Where a row-wise optimizer is not enough, update {_tables_by_sgd(tables)} SGD writes the "
        "rows that are looked up and keeps no averages of them. What is learned differs more than "
        "with a row-wise optimizer: rare rows take no longer steps than frequent ones, and their "
        "learning rate has to be found anew.",
        place=(found.file, found.line),
        evidence=_evidence(tables),
        title=_BY_SGD,
        edit=edit,
    )
    return [finding]


def _tables_by_sgd(tables: list[Embedding]) -> str:
    return (
        f"{names_of(tables)} by SGD without momentum, and all other variables by the optimizer "
        "that they have."
    )


def _advice(session: Session, tables: list[Embedding], edit: Edit | None) -> str:
    rows = sum(table.rows for table in tables)
    instead, beside = _instead(session, tables, edit)
    return (
        f"{instead}{beside} {_optimizer(session)} passes over all {rows} rows of "
        f"{names_of(tables)} in each step{_needed(tables)}.{_how(tables)}"
    )


def _instead(session: Session, tables: list[Embedding], edit: Edit | None) -> tuple[str, str]:
    """What to write: what is tried, or where arguments alone make the passes, without which. And
    what else does."""
    loop = session.diagnosed_loop()
    keras = loop.keras if loop else None
    if keras is None:
        # Of a loop of the script's own nobody knows by which rule it is to go on learning.
        return _ROW_WISE_IN_A_LOOP, _SGD_TOO
    without = to_drop(keras)
    row_wise = ROW_WISE_OPTIMIZERS.get(_optimizer(session), "LazyAdam")
    if edit is not None and edit.changes == (SetModel({"optimizer": "sgd_for_tables"}),):
        untried = (
            f"{without[:1].lower()}{without[1:]}"
            if without is not None
            else f"`pipediag.optimizers.{row_wise}`, which updates only the rows that are looked "
            f"up; {no_row_wise(session)}.{to_add(keras)}"
        )
        return f"Update {_tables_by_sgd(tables)}", f" Not tried: {untried}"
    if without is not None:
        return without, ""
    return (
        f"Compile with `pipediag.optimizers.{row_wise}`, which updates only the rows that are "
        "looked up.",
        f"{_SGD_TOO}{to_add(keras)}",
    )


def _optimizer(session: Session) -> str:
    loop = session.diagnosed_loop()
    return (loop.keras.optimizer if loop and loop.keras else None) or "The optimizer"


def _needed(tables: list[Embedding]) -> str:
    """How many rows the batches looked up, where that is known of all."""
    touched = [table.rows_touched_per_step for table in tables]
    known = [one for one in touched if one is not None]
    return f", of which it looks up {sum(known)}" if known and len(known) == len(touched) else ""


def _how(tables: list[Embedding]) -> str:
    """What the step makes of the size of the tables."""
    made = sum(table.temporary_bytes or 0 for table in tables) / 1e6
    if made < 1:
        return ""
    spread = any(table.gradient_spread for table in tables)
    first = ", the spread gradient among them" if spread else ""
    return f" The step makes {made:.0f} MB of tensors as large as the table{first}."


def _dense_gradient(table: Embedding) -> Finding:
    return META.finding(
        "informative",
        f"The gradient of `{table.layer}` itself is as large as the table, so no optimizer can "
        "update its rows alone: a regulariser or a constraint over the table, or a use of all of "
        "it, makes it so.",
        evidence=_evidence([table]),
        title="The gradient of an embedding is as large as its table",
    )


def _evidence(tables: list[Embedding]) -> dict[str, Scalar]:
    first = tables[0]
    operations = {name for table in tables for name in table.whole_table_operations}
    return {
        "layer": first.layer,
        "tables": len(tables),
        "update_known_from": "the traced step",
        "rows": sum(table.rows for table in tables),
        "rows_touched_per_step": first.rows_touched_per_step if len(tables) == 1 else None,
        "table_bytes": sum(table.table_bytes for table in tables),
        "slot_bytes": sum(table.slot_bytes or 0 for table in tables),
        "temporary_bytes": sum(table.temporary_bytes or 0 for table in tables),
        "whole_table_operations": ", ".join(sorted(operations)),
        "copied_on_lookup": any(table.copied_on_lookup for table in tables),
    }
