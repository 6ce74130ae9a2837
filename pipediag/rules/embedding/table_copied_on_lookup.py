"""A whole embedding table copied, or cast, before a few of its rows are looked up."""

from __future__ import annotations

from dataclasses import replace

from pipediag.facts.embedding_cost import parts_ms, percent_of_step
from pipediag.facts.limits import OPERATION_SHARE, Threshold
from pipediag.facts.table_sizes import LARGE, large
from pipediag.rules.bounds import at_most_without
from pipediag.rules.embedding.sizes import names_of
from pipediag.rules.model_edits import NO_MODEL_EDIT, compiled_by_xla
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit
from pipediag.session.embeddings import Embedding
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

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
META = Meta(
    id="table-copied-on-lookup",
    name="Table copied on lookup",
    title_failed="A whole embedding table is copied before a few of its rows are looked up",
    title_passed="Lookups read the rows that they need",
    looks_at="The graph of the traced step: whether a lookup reads a variable as a whole into "
    "which the step scatters rows, outside of XLA, and whether it casts all of it.",
    why="Once rows of a variable have been written in place, TensorFlow copies all of it wherever "
    "it is read as a tensor, and Keras' `Embedding` reads it so before it gathers. A layer of your "
    "own under a mixed policy casts all of it. Both take time that grows with the table.",
    edit="A lookup in the variable itself, `tf.nn.embedding_lookup(self.embeddings.value, ids)`, "
    "or `jit_compile=True`.",
    cost="None for the lookup. XLA compiles once for each shape and rounds otherwise.",
    bound="None: the step without the copy was not measured. At most what the copy takes in "
    "the profile is saved.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(LARGE, CPU_RATE, GPU_RATE, OPERATION_SHARE),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("device_compute",),
    tried_when_informing=True,
)


def check(session: Session) -> list[Finding]:
    """One finding on all tables that are copied, as one edit mends them all."""
    tables = large(session.embeddings)
    if not tables:
        return [META.finding("not-applicable", "The model has no large embedding table.")]
    moved = [table for table in tables if _bytes(table)]
    if moved:
        return [_finding(session, moved)]
    unknown = [table for table in tables if table.copied_bytes_per_step is None]
    if unknown:
        reason = unknown[0].missing or f"How {unknown[0].layer} is looked up was not seen."
        return [META.finding("inconclusive", reason, evidence={"layer": unknown[0].layer})]
    return [META.finding("pass", "", evidence={"tables": len(tables)})]


def _bytes(table: Embedding) -> int:
    return (table.copied_bytes_per_step or 0) + _cast_bytes(table)


def _cast_bytes(table: Embedding) -> int:
    """What casts of the whole table read."""
    return table.table_bytes * table.whole_table_operations.get("Cast", 0)


def _finding(session: Session, tables: list[Embedding]) -> Finding:
    took = parts_ms(session, tables, ("copy",))
    measured = percent_of_step(session, took)
    percent = _percent(session, tables) if measured is None else measured
    evidence = _evidence(tables, percent)
    if took is not None:
        evidence["copy_ms_per_step"] = took
    about = "about " if measured is None else ""
    advice = _advice(session, tables)
    if percent < OPERATION_SHARE.value:
        return META.finding(
            "informative",
            f"{advice} Here that is {about}{percent:.1f} % of the step.",
            evidence=evidence,
            edit=_edit(session),
        )
    if all(table.update == "dense" for table in tables):
        first = "The update passes over the same tables more often: see to that first."
        return META.finding(
            "informative", f"{advice} {first}", evidence=evidence, edit=_edit(session)
        )
    if waits := input_first(session):
        return META.finding("informative", waits, evidence=evidence, edit=_edit(session))
    loop = session.diagnosed_loop()
    return META.finding(
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


def _advice(session: Session, tables: list[Embedding]) -> str:
    cast = [table for table in tables if _cast_bytes(table)]
    copied = [table for table in tables if table.copied_bytes_per_step]
    said = []
    if copied:
        megabytes = sum(table.copied_bytes_per_step or 0 for table in copied) / 1e6
        said.append(
            f"{_through_the_variable(session)} Each step copies {megabytes:.0f} MB, all of "
            f"{names_of(copied)}, to look up {_needed(copied)}: rows of a table that the optimizer "
            "writes in place are looked up in a copy where the table is read as a tensor."
        )
    if cast:
        said.append(
            f"Look rows of {names_of(cast)} up first and cast these, not the whole table: where a "
            "mixed policy casts it, make the weight with `autocast=False`."
        )
    return " ".join(said)


def _needed(tables: list[Embedding]) -> str:
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
    edit = compiled_by_xla(session, META.id)
    if edit is None:
        return None
    left_out = "XLA compiles the rest of the step, too, so that it may gain or lose more than that."
    return replace(edit, caveat=f"{edit.caveat} {left_out}" if edit.caveat else left_out)


def _evidence(tables: list[Embedding], percent: float) -> dict[str, Scalar]:
    return {
        "layer": tables[0].layer,
        "tables": len(tables),
        "table_bytes": sum(table.table_bytes for table in tables),
        "copied_bytes_per_step": sum(table.copied_bytes_per_step or 0 for table in tables),
        "cast_bytes_per_step": sum(_cast_bytes(table) for table in tables),
        "copy_percent_of_step": percent,
        "rows_touched_per_step": tables[0].rows_touched_per_step if len(tables) == 1 else None,
    }
