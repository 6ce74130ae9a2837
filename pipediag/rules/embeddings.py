"""Work on all rows of an embedding table for the few that a step looks up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pipediag.facts.embeddings import LARGE, large, parts_ms, percent_of_step
from pipediag.facts.limits import INPUT_BOUND, OPERATION_SHARE, Threshold
from pipediag.facts.names import exact_time
from pipediag.facts.step import class_percent
from pipediag.rules.bounds import at_most_without
from pipediag.rules.model_edits import (
    NO_MODEL_EDIT,
    arguments_named,
    compiled_by_xla,
    no_optimizer_edit,
    no_row_wise,
    row_wise_update,
    sgd_for_tables,
    to_add,
    to_drop,
    updates_whole_tables,
    without_table_terms,
)
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, SetModel
from pipediag.session.embeddings import Embedding
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS, Scalar, TablePart


def names_of(tables: list[Embedding]) -> str:
    """The first of them, for a sentence."""
    names = ", ".join(f"`{table.layer}`" for table in tables[:3])
    return names + (f" and {len(tables) - 3} more" if len(tables) > 3 else "")


def computed_percent(session: Session) -> float:
    """Of the step, by the device."""
    return class_percent(session, ["device_compute"])


def judged_by_compute(
    meta: Meta,
    session: Session,
    least: Threshold | None,
    advice: str,
    evidence: Mapping[str, Scalar],
    *,
    took_ms: float | None,
    gone_ms: float | None = None,
    edit: Edit | None = None,
    untried: str | None = None,
    place: tuple[str, int] | None = None,
) -> Finding:
    """Return what a rule finds: it informs where the passes take little, or input comes first.

    Its edit is tried in either case.

    Args:
        least: of the step that has to be compute, where no more is known.
        took_ms: of a step in what the advice takes away; None where that was not told.
        gone_ms: of a step in all that may go with it, where that is more: the most that the advice
            can buy.
        place: what to change; the loop, where that is not known.
    """
    took = percent_of_step(session, took_ms)
    if took is not None:
        evidence = {**evidence, "took_ms_per_step": took_ms, "took_percent_of_step": took}
    compute = computed_percent(session)
    if took is not None and took < OPERATION_SHARE.value:
        advice = f"{advice} Here that takes only {took:.1f} % of the step."
        return meta.finding("informative", advice, evidence=evidence, edit=edit)
    if took is None and least is not None and compute < least.value:
        advice = f"{advice} Here only {compute:.0f} % of the step is compute."
        return meta.finding("informative", advice, evidence=evidence, edit=edit)
    if waits := input_first(session):
        return meta.finding("informative", waits, evidence=evidence, edit=edit)
    if took is not None and took_ms is not None:
        advice = f"{advice} That takes {exact_time(took_ms)} of each step, {took:.0f} % of it."
    gone = took if gone_ms is None else percent_of_step(session, gone_ms)
    loop = session.diagnosed_loop()
    return meta.finding(
        "fail",
        advice,
        place=place or ((loop.file, loop.line) if loop else None),
        evidence=evidence,
        speedup_at_most=None if gone is None else at_most_without(session, gone),
        edit=edit,
        untried=untried,
    )


UPDATE_COMPUTE = Threshold(
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
DENSE_EMBEDDING_UPDATE = Meta(
    id="embedding-update",
    name="Dense update of an embedding",
    title_failed="The optimizer rewrites a whole embedding table in every step",
    title_passed="Embedding tables are updated where they are touched",
    why="Adam, RMSprop, momentum and others keep moving averages of every row, and a weight decay, "
    "an average of the weights or a norm over all gradients passes over every row too: each step "
    "then reads and writes the table several times, in time that grows with the table and not with "
    "the batch.",
    edit="A row-wise Adam, as `pipediag.optimizers.LazyAdam`; or SGD without momentum for "
    "the tables alone.",
    cost="Rows are no longer updated in steps that don't look them up: another optimisation, to be "
    "tuned again. SGD also takes steps of one length for rare rows and frequent ones, and needs a "
    "learning rate of its own.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(LARGE, COSTLY, OPERATION_SHARE, UPDATE_COMPUTE, INPUT_BOUND),
    severity="warn",
    effect_on_results="changes a hyper-parameter",
    frees=("device_compute",),
    tried_when_informing=True,
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


def check_dense_embedding_update(session: Session) -> list[Finding]:
    """One finding on all tables whose update matters, as one optimizer updates them all; a second
    one where there is another way than the row-wise one to try."""
    tables = [table for table in session.embeddings if table.trainable]
    if not tables:
        return [
            DENSE_EMBEDDING_UPDATE.finding(
                "not-applicable", "The model has no trainable embedding table."
            )
        ]
    whole = [table for table in tables if table.update == "dense"]
    from_rows = [table for table in whole if table.gradient == "sparse"]
    if _matter(session, from_rows):
        found = _update_finding(session, from_rows)
        return [found, *_by_sgd(session, found, from_rows)]
    if _matter(session, whole):
        return [_dense_gradient(whole[0])]
    unknown = [table for table in large(tables) if table.update is None]
    if unknown:
        reason = unknown[0].missing or f"How {unknown[0].layer} is updated was not seen."
        return [
            DENSE_EMBEDDING_UPDATE.finding(
                "inconclusive", reason, evidence={"layer": unknown[0].layer}
            )
        ]
    edit = row_wise_update(session, DENSE_EMBEDDING_UPDATE.id)
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
    return DENSE_EMBEDDING_UPDATE.finding(
        "informative",
        _update_advice(session, tables, edit),
        evidence={**_update_evidence(tables), **known},
        title=_LITTLE if little else _SMALL,
        edit=edit,
    )


def _pass(session: Session, tables: list[Embedding], whole: list[Embedding]) -> Finding:
    """It says so where small tables are updated as a whole."""
    evidence: dict[str, Scalar] = {"tables": len(tables)}
    if not whole:
        return DENSE_EMBEDDING_UPDATE.finding("pass", "", evidence=evidence)
    took = _took_percent(session, whole)
    if took is not None:
        evidence["took_percent_of_step"] = took
    little = took is not None and took < OPERATION_SHARE.value
    return DENSE_EMBEDDING_UPDATE.finding(
        "pass", "", evidence=evidence, title=_LITTLE if little else _SMALL
    )


def _update_finding(session: Session, tables: list[Embedding]) -> Finding:
    edit = row_wise_update(session, DENSE_EMBEDDING_UPDATE.id)
    return judged_by_compute(
        DENSE_EMBEDDING_UPDATE,
        session,
        UPDATE_COMPUTE,
        _update_advice(session, tables, edit),
        {
            **_update_evidence(tables),
            "device_compute_percent": computed_percent(session),
            "optimizer_arguments": arguments_named(session),
        },
        took_ms=parts_ms(session, tables, _PARTS),
        edit=edit,
        untried=no_optimizer_edit(session),
    )


def _by_sgd(session: Session, found: Finding, tables: list[Embedding]) -> list[Finding]:
    """The tables updated by SGD, where something else is tried before that."""
    edit = sgd_for_tables(session, f"{DENSE_EMBEDDING_UPDATE.id}:sgd")
    if found.edit is None or edit is None or found.edit.changes == edit.changes:
        return []
    edit = replace(edit, instead_of=found.edit.id)
    finding = DENSE_EMBEDDING_UPDATE.finding(
        "informative",
        f"Where a row-wise optimizer is not enough, update {_tables_by_sgd(tables)} SGD writes the "
        "rows that are looked up and keeps no averages of them. What is learned differs more than "
        "with a row-wise optimizer: rare rows take no longer steps than frequent ones, and their "
        "learning rate has to be found anew.",
        place=(found.file, found.line),
        evidence=_update_evidence(tables),
        title=_BY_SGD,
        edit=edit,
    )
    return [finding]


def _tables_by_sgd(tables: list[Embedding]) -> str:
    return (
        f"{names_of(tables)} by SGD without momentum, and all other variables by the optimizer "
        "that they have."
    )


def _update_advice(session: Session, tables: list[Embedding], edit: Edit | None) -> str:
    rows = sum(table.rows for table in tables)
    instead, beside = _instead(session, tables, edit)
    return (
        f"{instead}{beside} {_optimizer(session)} passes over all {rows} rows of "
        f"{names_of(tables)} in each step{_update_needed(tables)}.{_how(tables)}"
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


def _update_needed(tables: list[Embedding]) -> str:
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
    return DENSE_EMBEDDING_UPDATE.finding(
        "informative",
        f"The gradient of `{table.layer}` itself is as large as the table, so no optimizer can "
        "update its rows alone: a regulariser or a constraint over the table, or a use of all of "
        "it, makes it so.",
        evidence=_update_evidence([table]),
        title="The gradient of an embedding is as large as its table",
    )


def _update_evidence(tables: list[Embedding]) -> dict[str, Scalar]:
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


TERMS_COMPUTE = Threshold(
    "device compute",
    30.0,
    "% of the step",
    "own choice: the passes are computed on the device, and below this even all of it gains "
    "little; it counts where the profile does not tell them apart",
)
REGULARIZED_TABLE = Meta(
    id="embedding-update",
    name="Regularised table",
    title_failed="A regulariser or a constraint passes over a whole embedding table in every step",
    title_passed="Nothing is added to the loss or forced on the rows of a whole embedding table",
    why="A regulariser adds all rows to the loss, so that its gradient is as large as the table "
    "and no optimizer can update the batch's rows alone. A constraint changes all rows after each "
    "update.",
    edit="`activity_regularizer` in place of `embeddings_regularizer`; no constraint, or one on "
    "the vectors that are looked up.",
    cost="Rows are shrunk as often as they are looked up: another objective, to be tuned again.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(LARGE, OPERATION_SHARE, TERMS_COMPUTE, INPUT_BOUND),
    severity="warn",
    effect_on_results="changes a hyper-parameter",
    frees=("device_compute",),
    tried_when_informing=True,
)


def check_regularized_table(session: Session) -> list[Finding]:
    """One finding on all large tables that have one, as one edit takes it from them all."""
    tables = [table for table in large(session.embeddings) if table.trainable]
    if not tables:
        return [
            REGULARIZED_TABLE.finding(
                "not-applicable", "The model trains no large embedding table."
            )
        ]
    asked = [table for table in tables if table.regularizer or table.constraint]
    unread = [table for table in asked if table.update is None]
    if unread:
        reason = unread[0].missing or f"How {unread[0].layer} is updated was not seen."
        return [
            REGULARIZED_TABLE.finding("inconclusive", reason, evidence={"layer": unread[0].layer})
        ]
    passed_over = [table for table in asked if table.update == "dense"]
    if passed_over:
        return [_terms_finding(session, passed_over)]
    return [REGULARIZED_TABLE.finding("pass", "", evidence={"tables": len(tables)})]


def _terms_finding(session: Session, tables: list[Embedding]) -> Finding:
    evidence = {**_terms_evidence(tables), "device_compute_percent": computed_percent(session)}
    return judged_by_compute(
        REGULARIZED_TABLE,
        session,
        TERMS_COMPUTE,
        f"{_terms_advice(tables)}{_and_rows(session, tables)}",
        evidence,
        took_ms=_took_ms(session, tables),
        edit=without_table_terms(session, f"{REGULARIZED_TABLE.id}:terms"),
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


def _terms_advice(tables: list[Embedding]) -> str:
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


def _terms_evidence(tables: list[Embedding]) -> dict[str, Scalar]:
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


CPU_RATE = Threshold(
    "rate at which a table in the host's memory is taken to be copied",
    10.0,
    "MB/ms",
    "own measurement on two cores: 256 MB took 24 of 26 ms",
)
GPU_RATE = Threshold(
    "rate at which a table in a GPU's memory is taken to be copied",
    2000.0,
    "MB/ms",
    "own choice: half of what the memory of an H200 moves, as a copy reads and writes; others take "
    "longer",
)
TABLE_COPIED_ON_LOOKUP = Meta(
    id="embedding-update",
    name="Table copied on lookup",
    title_failed="A whole embedding table is copied before a few of its rows are looked up",
    title_passed="Lookups read the rows that they need",
    why="Once rows of a variable have been written in place, TensorFlow copies all of it wherever "
    "it is read as a tensor, and Keras' `Embedding` reads it so before it gathers. A layer of "
    "your own under a mixed policy casts all of it.",
    edit="A lookup in the variable itself, `tf.nn.embedding_lookup(self.embeddings.value, ids)`, "
    "or `jit_compile=True`.",
    cost="None for the lookup. XLA compiles once for each shape and rounds otherwise.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(LARGE, CPU_RATE, GPU_RATE, OPERATION_SHARE),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("device_compute",),
    tried_when_informing=True,
)


def check_table_copied_on_lookup(session: Session) -> list[Finding]:
    """One finding on all tables that are copied, as one edit mends them all."""
    tables = large(session.embeddings)
    if not tables:
        return [
            TABLE_COPIED_ON_LOOKUP.finding(
                "not-applicable", "The model has no large embedding table."
            )
        ]
    moved = [table for table in tables if _bytes(table)]
    if moved:
        return [_copy_finding(session, moved)]
    unknown = [table for table in tables if table.copied_bytes_per_step is None]
    if unknown:
        reason = unknown[0].missing or f"How {unknown[0].layer} is looked up was not seen."
        return [
            TABLE_COPIED_ON_LOOKUP.finding(
                "inconclusive", reason, evidence={"layer": unknown[0].layer}
            )
        ]
    return [TABLE_COPIED_ON_LOOKUP.finding("pass", "", evidence={"tables": len(tables)})]


def _bytes(table: Embedding) -> int:
    return (table.copied_bytes_per_step or 0) + _cast_bytes(table)


def _cast_bytes(table: Embedding) -> int:
    """What casts of the whole table read."""
    return table.table_bytes * table.whole_table_operations.get("Cast", 0)


def _copy_finding(session: Session, tables: list[Embedding]) -> Finding:
    took = parts_ms(session, tables, ("copy",))
    measured = percent_of_step(session, took)
    percent = _percent(session, tables) if measured is None else measured
    evidence = _copy_evidence(tables, percent)
    if took is not None:
        evidence["copy_ms_per_step"] = took
    about = "about " if measured is None else ""
    advice = _copy_advice(session, tables)
    if percent < OPERATION_SHARE.value:
        return TABLE_COPIED_ON_LOOKUP.finding(
            "informative",
            f"{advice} Here that is {about}{percent:.1f} % of the step.",
            evidence=evidence,
            edit=_edit(session),
        )
    if all(table.update == "dense" for table in tables):
        first = "The update passes over the same tables more often: see to that first."
        return TABLE_COPIED_ON_LOOKUP.finding(
            "informative", f"{advice} {first}", evidence=evidence, edit=_edit(session)
        )
    if waits := input_first(session):
        return TABLE_COPIED_ON_LOOKUP.finding(
            "informative", waits, evidence=evidence, edit=_edit(session)
        )
    loop = session.diagnosed_loop()
    return TABLE_COPIED_ON_LOOKUP.finding(
        "fail",
        advice,
        place=(loop.file, loop.line) if loop else None,
        evidence=evidence,
        speedup_at_most=None if measured is None else at_most_without(session, measured),
        edit=_edit(session),
        untried=NO_MODEL_EDIT,
    )


def _percent(session: Session, tables: list[Embedding]) -> float:
    """Of the step, at rates that a copy hardly surpasses, where the profile does not tell."""
    took = sum(_bytes(table) / 1e6 / _rate(table) for table in tables)
    step = session.steps.mean_ms if session.steps else 0.0
    return min(100.0, 100.0 * took / step) if step else 0.0


def _rate(table: Embedding) -> float:
    return (GPU_RATE if "GPU" in (table.device or "") else CPU_RATE).value


def _copy_advice(session: Session, tables: list[Embedding]) -> str:
    cast = [table for table in tables if _cast_bytes(table)]
    copied = [table for table in tables if table.copied_bytes_per_step]
    said = []
    if copied:
        megabytes = sum(table.copied_bytes_per_step or 0 for table in copied) / 1e6
        said.append(
            f"{_through_the_variable(session)} Each step copies {megabytes:.0f} MB, all of "
            f"{names_of(copied)}, to look up {_rows_of_lookup(copied)}: rows of a table that the "
            "optimizer writes in place are looked up in a copy where the table is read as a tensor."
        )
    if cast:
        said.append(
            f"Look rows of {names_of(cast)} up first and cast these, not the whole table: where a "
            "mixed policy casts it, make the weight with `autocast=False`."
        )
    return " ".join(said)


def _rows_of_lookup(tables: list[Embedding]) -> str:
    touched = [table.rows_touched_per_step for table in tables]
    if any(one is None for one in touched):
        return "the batch's rows"
    return f"{sum(one or 0 for one in touched)} rows"


def _through_the_variable(session: Session) -> str:
    loop = session.diagnosed_loop()
    if loop is None or loop.keras is None:
        return (
            "Give `tf.nn.embedding_lookup` the variable itself, for a Keras one its `value`, not a "
            "tensor made of it; the results are the same."
        )
    return (
        "Make an Embedding of your own whose `call` is "
        "`tf.nn.embedding_lookup(self.embeddings.value, ids)`, which reads the rows alone, with "
        "the same results; `jit_compile=True` takes the copy away too, up to rounding."
    )


def _edit(session: Session) -> Edit | None:
    edit = compiled_by_xla(session, f"{TABLE_COPIED_ON_LOOKUP.id}:copy")
    if edit is None:
        return None
    left_out = "XLA compiles the rest of the step, too, so that it may gain or lose more than that."
    return replace(edit, caveat=f"{edit.caveat} {left_out}" if edit.caveat else left_out)


def _copy_evidence(tables: list[Embedding], percent: float) -> dict[str, Scalar]:
    return {
        "layer": tables[0].layer,
        "tables": len(tables),
        "table_bytes": sum(table.table_bytes for table in tables),
        "copied_bytes_per_step": sum(table.copied_bytes_per_step or 0 for table in tables),
        "cast_bytes_per_step": sum(_cast_bytes(table) for table in tables),
        "copy_percent_of_step": percent,
        "rows_touched_per_step": tables[0].rows_touched_per_step if len(tables) == 1 else None,
    }
