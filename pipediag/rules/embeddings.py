"""Work on all rows of an embedding table for the few that a step looks up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pipediag.facts.embeddings import LARGE, large, parts_ms, percent_of_step
from pipediag.facts.limits import INPUT_BOUND, OPERATION_SHARE, Threshold
from pipediag.facts.names import exact_time
from pipediag.facts.step import class_percent
from pipediag.rules.bounds import at_most_without
from pipediag.rules.model_edits import (
    NO_MODEL_EDIT,
    compiled_by_xla,
    has_row_wise,
    keras_of,
    no_optimizer_edit,
    passing_arguments,
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


def computed_percent(session: Session) -> float:
    """Return the device's compute in percent of the step."""
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
    """Return a finding that informs where the passes take little, or input comes first.

    Its edit is tried in either case.

    Args:
        least: percent of the step that has to be compute, where no more is known.
        took_ms: time of a step in what the advice takes away; None where the profile has none.
        gone_ms: time of a step that may go with it, where that is more: the most that the advice
            can buy.
        place: what to change; the loop, where that is not known.
    """
    took = percent_of_step(session, took_ms)
    if took is not None:
        evidence = {**evidence, "took_ms_per_step": took_ms, "took_percent_of_step": took}
    finding = partial(meta.finding, evidence=evidence, edit=edit)
    compute = computed_percent(session)
    if took is not None and took < OPERATION_SHARE.value:
        return finding("informative", f"{advice} Here that takes only {took:.1f} % of the step.")
    if took is None and least is not None and compute < least.value:
        return finding("informative", f"{advice} Here only {compute:.0f} % of the step is compute.")
    if waits := input_first(session):
        return finding("informative", waits)
    if took is not None and took_ms is not None:
        advice = f"{advice} That takes {exact_time(took_ms)} of each step, {took:.0f} % of it."
    gone = took if gone_ms is None else percent_of_step(session, gone_ms)
    loop = session.diagnosed_loop()
    return finding(
        "fail",
        advice,
        place=place or ((loop.file, loop.line) if loop else None),
        speedup_at_most=None if gone is None else at_most_without(session, gone),
        untried=untried,
    )


def _names_of(tables: Sequence[Embedding]) -> str:
    names = ", ".join(f"`{table.layer}`" for table in tables[:3])
    return names + (f" and {len(tables) - 3} more" if len(tables) > 3 else "")


def _touched(tables: Sequence[Embedding]) -> int | None:
    """Return the rows that a step looks up, where that is known of all tables."""
    touched = [table.rows_touched_per_step for table in tables]
    known = [one for one in touched if one is not None]
    return sum(known) if known and len(known) == len(touched) else None


def _made_mb(tables: Sequence[Embedding]) -> float:
    """Return the size of the tensors as large as a table that a step makes."""
    return sum(table.temporary_bytes or 0 for table in tables) / 1e6


def _evidence_of(tables: Sequence[Embedding], **more: Scalar) -> dict[str, Scalar]:
    operations = {name for table in tables for name in table.whole_table_operations}
    return {
        "layer": ", ".join(table.layer for table in tables),
        "tables": len(tables),
        "rows": sum(table.rows for table in tables),
        "rows_touched_per_step": _touched(tables),
        "table_bytes": sum(table.table_bytes for table in tables),
        "temporary_bytes": sum(table.temporary_bytes or 0 for table in tables),
        "whole_table_operations": ", ".join(sorted(operations)),
        **more,
    }


def _not_seen(
    meta: Meta, tables: Sequence[Embedding], known: Callable[[Embedding], bool], what: str
) -> list[Finding]:
    """Return that a step was not read of one of the tables; nothing where it was of all."""
    unread = [table for table in tables if not known(table)]
    if not unread:
        return []
    reason = unread[0].missing or f"How {unread[0].layer} is {what} was not seen."
    return [meta.finding("inconclusive", reason, evidence={"layer": unread[0].layer})]


UPDATE_COMPUTE = Threshold(
    "device compute, where no more is known", 30.0, "% of the step", "own choice: less gains little"
)
COSTLY = Threshold(
    "size of tables whose update matters", 5.0, "MB", "own measurement: 2.6 MB gave 1.05x, 26 MB 3x"
)
DENSE_EMBEDDING_UPDATE = Meta(
    id="embedding-update",
    name="Dense update of an embedding",
    title_failed="Update only the rows of the embedding that a step looks up",
    title_passed="Embedding tables are updated where they are touched",
    why="Adam, RMSprop, momentum, weight decay and others pass over every row in each step, in a "
    "time that grows with the table and not with the batch.",
    edit="A row-wise Adam, as `pipediag.optimizers.LazyAdam`; or SGD for the tables alone.",
    cost="Rows are no longer updated in steps that don't look them up: another optimisation, to be "
    "tuned again. SGD needs a learning rate of its own.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(LARGE, COSTLY, OPERATION_SHARE, UPDATE_COMPUTE, INPUT_BOUND),
    effect_on_results="changes a hyper-parameter",
    frees=("device_compute",),
    tried_when_informing=True,
)
_UPDATE: tuple[TablePart, ...] = ("gradient", "update")
_SGD_TOO = " SGD without momentum, weight decay or a norm over all gradients does so, too."


def check_dense_embedding_update(session: Session) -> list[Finding]:
    """Return a finding on all tables whose update matters, as one optimizer updates them all.

    A second one where there is another edit than the row-wise one to try.
    """
    meta = DENSE_EMBEDDING_UPDATE
    tables = [table for table in session.embeddings if table.trainable]
    if not tables:
        return [meta.finding("not-applicable", "The model has no trainable embedding table.")]
    whole = [table for table in tables if table.update == "dense"]
    from_rows = [table for table in whole if table.gradient == "sparse"]
    edit = row_wise_update(session, meta.id)
    if _matter(session, from_rows):
        found = judged_by_compute(
            meta,
            session,
            UPDATE_COMPUTE,
            _update_advice(session, from_rows, edit),
            _update_evidence(session, from_rows),
            took_ms=parts_ms(session, from_rows, _UPDATE),
            edit=edit,
            untried=no_optimizer_edit(session),
        )
        return [found, *_by_sgd(session, found, from_rows)]
    if _matter(session, whole):
        return [
            meta.finding(
                "informative",
                f"No optimizer can update rows of `{whole[0].layer}` alone, as its gradient is as "
                "large as the table: a regulariser, or a use of all of the table, makes it so.",
                evidence=_update_evidence(session, whole[:1]),
                title="Give the embedding a gradient of rows alone",
            )
        ]
    if unknown := _not_seen(meta, large(tables), lambda table: table.update is not None, "updated"):
        return unknown
    took = _took_percent(session, whole)
    known: dict[str, Scalar] = {} if took is None else {"took_percent_of_step": took}
    little = took is not None and took < OPERATION_SHARE.value
    title = "Embedding tables that are updated as a whole are small"
    if little:
        title = "To update whole embedding tables takes little of the step"
    if from_rows and edit is not None:
        # Tried last: the tables are small, and only a trial tells what that means.
        advice = _update_advice(session, from_rows, edit)
        evidence = {**_update_evidence(session, from_rows), **known}
        return [meta.finding("informative", advice, evidence=evidence, title=title, edit=edit)]
    evidence = {"tables": len(tables), **known}
    return [meta.finding("pass", evidence=evidence, title=title if whole else None)]


def _matter(session: Session, whole: Sequence[Embedding]) -> bool:
    """Return True if the tables that are updated as a whole are large, all together."""
    took = _took_percent(session, whole)
    least = COSTLY if took is not None and took >= OPERATION_SHARE.value else LARGE
    return sum(table.table_bytes for table in whole) >= least.value * 1e6


def _took_percent(session: Session, whole: Sequence[Embedding]) -> float | None:
    return percent_of_step(session, parts_ms(session, whole, _UPDATE))


def _update_evidence(session: Session, tables: Sequence[Embedding]) -> dict[str, Scalar]:
    keras = keras_of(session)
    return _evidence_of(
        tables,
        slot_bytes=sum(table.slot_bytes or 0 for table in tables),
        device_compute_percent=computed_percent(session),
        optimizer_arguments=", ".join(passing_arguments(keras)) or None if keras else None,
    )


def _by_sgd(session: Session, found: Finding, tables: Sequence[Embedding]) -> list[Finding]:
    """Return the tables updated by SGD, where something else is tried before that."""
    edit = sgd_for_tables(session, f"{DENSE_EMBEDDING_UPDATE.id}:sgd")
    if found.edit is None or edit is None or found.edit.changes == edit.changes:
        return []
    return [
        DENSE_EMBEDDING_UPDATE.finding(
            "informative",
            f"Where a row-wise optimizer is not enough, {_tables_by_sgd(tables)} What is learned "
            "differs more: SGD keeps no averages, and its learning rate has to be found anew.",
            place=(found.file, found.line),
            evidence=_update_evidence(session, tables),
            title="Update embeddings alone by SGD",
            edit=replace(edit, instead_of=found.edit.id),
        )
    ]


def _tables_by_sgd(tables: Sequence[Embedding]) -> str:
    return f"update {_names_of(tables)} by SGD without momentum, and other variables as before."


def _update_advice(session: Session, tables: Sequence[Embedding], edit: Edit | None) -> str:
    """Return what to write: what is tried, or the arguments to drop that alone make the passes."""
    keras = keras_of(session)
    own = (keras.optimizer if keras else None) or "The optimizer"
    row_wise = f"`pipediag.optimizers.{ROW_WISE_OPTIMIZERS.get(own, 'LazyAdam')}`"
    without = to_drop(keras) if keras is not None else None
    if keras is None:
        # By which rule a loop of the script's own is to go on learning, only its author knows.
        how = f"Give your loop a row-wise optimizer, such as {row_wise}.{_SGD_TOO}"
    elif edit is not None and edit.changes == (SetModel({"optimizer": "sgd_for_tables"}),):
        by_sgd = _tables_by_sgd(tables)
        instead = without or f"Compile with {row_wise}.{to_add(keras)}"
        how = f"{by_sgd[:1].upper()}{by_sgd[1:]} What was not tried: {instead}"
    elif without is not None:
        how = without
    else:
        how = (
            f"Compile with {row_wise}, which updates only the rows that are looked up.{_SGD_TOO}"
            f"{to_add(keras)}"
        )
    touched, made = _touched(tables), _made_mb(tables)
    looks_up = "" if touched is None else f", of which it looks up {touched}"
    makes = f" The step makes {made:.0f} MB of tensors as large as the table." if made >= 1 else ""
    return (
        f"{how} {own} passes over all {sum(table.rows for table in tables)} rows of "
        f"{_names_of(tables)} in each step{looks_up}.{makes}"
    )


REGULARIZED_TABLE = replace(
    DENSE_EMBEDDING_UPDATE,
    name="Regularised table",
    title_failed="Regularise or constrain only the rows that are looked up",
    title_passed="Nothing is added to the loss or forced on the rows of a whole embedding table",
    why="A regulariser adds all rows to the loss, so that its gradient is as large as the table. A "
    "constraint changes all rows after each update.",
    edit="`activity_regularizer` in place of `embeddings_regularizer`; no constraint, or one on "
    "the vectors that are looked up.",
    cost="Rows are shrunk as often as they are looked up: another objective, to be tuned again.",
    thresholds=(LARGE, OPERATION_SHARE, UPDATE_COMPUTE, INPUT_BOUND),
)


def check_regularized_table(session: Session) -> list[Finding]:
    """Return a finding on all large tables that have a term, as one edit takes it from them all."""
    meta = REGULARIZED_TABLE
    trained = [table for table in large(session.embeddings) if table.trainable]
    if not trained:
        return [meta.finding("not-applicable", "The model trains no large embedding table.")]
    asked = [table for table in trained if table.regularizer or table.constraint]
    if unread := _not_seen(meta, asked, lambda table: table.update is not None, "updated"):
        return unread
    tables = [table for table in asked if table.update == "dense"]
    if not tables:
        return []
    # Where the script gave the largest of those whose line is known its term.
    made_at = ((one.file, one.line) for one in tables if one.file is not None)
    return [
        judged_by_compute(
            meta,
            session,
            UPDATE_COMPUTE,
            _terms_advice(session, tables),
            _evidence_of(
                tables,
                regularizer=_classes(table.regularizer for table in tables) or None,
                constraint=_classes(table.constraint for table in tables) or None,
                device_compute_percent=computed_percent(session),
            ),
            took_ms=_terms_ms(session, tables),
            edit=without_table_terms(session, f"{meta.id}:terms"),
            place=next(((file, line) for file, line in made_at if line is not None), None),
            untried=no_optimizer_edit(session),
        )
    ]


def _terms_ms(session: Session, tables: Sequence[Embedding]) -> float | None:
    """Return the time of a step that goes with the terms; None where one's is not known.

    Without a regulariser, gradient and update may be the batch's rows'.
    """
    parts: list[float | None] = []
    for table in tables:
        goes: tuple[TablePart, ...] = ("regularizer", *(_UPDATE if table.regularizer else ()))
        parts.append(parts_ms(session, [table], goes))
    known = [one for one in parts if one is not None]
    return sum(known) if len(known) == len(parts) else None


def _terms_advice(session: Session, tables: Sequence[Embedding]) -> str:
    said = []
    if regularized := [table for table in tables if table.regularizer]:
        said.append(
            f"Give {_names_of(regularized)} `activity_regularizer` in place of "
            f"`embeddings_regularizer` ({_classes(one.regularizer for one in regularized)}), "
            f"which adds all {sum(table.rows for table in regularized)} rows to the loss."
        )
    if constrained := [table for table in tables if table.constraint]:
        said.append(
            f"Leave `embeddings_constraint` ({_classes(one.constraint for one in constrained)}) of "
            f"{_names_of(constrained)} out: it changes all "
            f"{sum(table.rows for table in constrained)} rows after each update."
        )
    if made := _made_mb(tables):
        said.append(f"Each step makes {made:.0f} MB of tensors as large as the table.")
    keras = keras_of(session)
    if keras is not None and updates_whole_tables(keras):
        by = "SGD without momentum"
        if has_row_wise(session, keras):
            by = f"`pipediag.optimizers.{ROW_WISE_OPTIMIZERS[keras.optimizer or '']}`"
        said.append(f"{keras.optimizer} passes over all rows, too: update rows alone, by {by}.")
    return " ".join(said)


def _classes(names: Iterable[str | None]) -> str:
    return ", ".join(sorted({name for name in names if name}))


CPU_RATE = Threshold(
    "rate of copies on the host", 10.0, "MB/ms", "own measurement: 256 MB took 24 ms"
)
GPU_RATE = Threshold(
    "rate of copies on a GPU", 2000.0, "MB/ms", "own choice: half of what an H200 moves"
)
TABLE_COPIED_ON_LOOKUP = replace(
    DENSE_EMBEDDING_UPDATE,
    name="Table copied on lookup",
    title_failed="Look rows up without a copy of the whole embedding table",
    title_passed="Lookups read the rows that they need",
    why="Once rows of a variable have been written in place, TensorFlow copies all of it wherever "
    "it is read as a tensor, as Keras' `Embedding` does before it gathers.",
    edit="A lookup in the variable itself, `tf.nn.embedding_lookup(self.embeddings.value, ids)`, "
    "or `jit_compile=True`.",
    cost="None for the lookup. XLA compiles once for each shape and rounds otherwise.",
    thresholds=(LARGE, CPU_RATE, GPU_RATE, OPERATION_SHARE),
    effect_on_results="same up to order or rounding",
)


def check_table_copied_on_lookup(session: Session) -> list[Finding]:
    """Return a finding on all tables that are copied, as one edit is for them all."""
    meta = TABLE_COPIED_ON_LOOKUP
    tables = large(session.embeddings)
    if not tables:
        return [meta.finding("not-applicable", "The model has no large embedding table.")]
    moved = [table for table in tables if _moved_bytes(table)]
    if not moved:
        return _not_seen(
            meta, tables, lambda table: table.copied_bytes_per_step is not None, "looked up"
        )
    return [_of_copies(session, moved)]


def _moved_bytes(table: Embedding) -> int:
    return (table.copied_bytes_per_step or 0) + _cast_bytes(table)


def _cast_bytes(table: Embedding) -> int:
    """Return the bytes that casts of the whole table read."""
    return table.table_bytes * table.whole_table_operations.get("Cast", 0)


def _of_copies(session: Session, tables: Sequence[Embedding]) -> Finding:
    took = parts_ms(session, tables, ("copy",))
    measured = percent_of_step(session, took)
    percent = _estimated_percent(session, tables) if measured is None else measured
    evidence = _evidence_of(
        tables,
        copied_bytes_per_step=sum(table.copied_bytes_per_step or 0 for table in tables),
        cast_bytes_per_step=sum(_cast_bytes(table) for table in tables),
        copy_percent_of_step=percent,
    )
    if took is not None:
        evidence["copy_ms_per_step"] = took
    edit = compiled_by_xla(session, f"{TABLE_COPIED_ON_LOOKUP.id}:copy")
    if edit is not None:
        rest = "XLA compiles the rest of the step, too."
        edit = replace(edit, caveat=f"{edit.caveat} {rest}")
    finding = partial(TABLE_COPIED_ON_LOOKUP.finding, evidence=evidence, edit=edit)
    advice = _copy_advice(session, tables)
    if percent < OPERATION_SHARE.value:
        about = "about " if measured is None else ""
        return finding("informative", f"{advice} Here that is {about}{percent:.1f} % of the step.")
    if all(table.update == "dense" for table in tables):
        first = "The update passes over the same tables more often: see to that first."
        return finding("informative", f"{advice} {first}")
    if waits := input_first(session):
        return finding("informative", waits)
    loop = session.diagnosed_loop()
    return finding(
        "fail",
        advice,
        place=(loop.file, loop.line) if loop else None,
        speedup_at_most=None if measured is None else at_most_without(session, measured),
        untried=NO_MODEL_EDIT,
    )


def _estimated_percent(session: Session, tables: Sequence[Embedding]) -> float:
    """Return the share of the step at rates that a copy hardly surpasses."""
    took = 0.0
    for table in tables:
        rate = GPU_RATE if "GPU" in (table.device or "") else CPU_RATE
        took += _moved_bytes(table) / 1e6 / rate.value
    step = session.steps.mean_ms if session.steps else 0.0
    return min(100.0, 100.0 * took / step) if step else 0.0


def _copy_advice(session: Session, tables: Sequence[Embedding]) -> str:
    said = []
    if copied := [table for table in tables if table.copied_bytes_per_step]:
        megabytes = sum(table.copied_bytes_per_step or 0 for table in copied) / 1e6
        touched = _touched(copied)
        rows = "the batch's rows" if touched is None else f"{touched} rows"
        how = (
            "Make an Embedding of your own whose `call` is "
            "`tf.nn.embedding_lookup(self.embeddings.value, ids)`, with the same results; "
            "`jit_compile=True` takes the copy away too, up to rounding."
        )
        if keras_of(session) is None:
            how = "Give `tf.nn.embedding_lookup` the variable itself, not a tensor made of it."
        said.append(
            f"{how} Each step copies {megabytes:.0f} MB, all of {_names_of(copied)}, to look up "
            f"{rows}."
        )
    if cast := [table for table in tables if _cast_bytes(table)]:
        said.append(
            f"Look rows of {_names_of(cast)} up first and cast these: where a mixed policy casts "
            "the table, make the weight with `autocast=False`."
        )
    return " ".join(said)
