"""Ids that a batch looks up several times, each time with a vector of its own."""

from __future__ import annotations

from pipediag.facts.devices import accelerators
from pipediag.facts.embedding_cost import parts_ms, percent_of_step
from pipediag.facts.limits import INPUT_BOUND, OPERATION_SHARE, Threshold
from pipediag.rules.embedding.sizes import names_of, vector_bytes
from pipediag.rules.model_edits import different_ids
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar, TablePart

REPEATED = Threshold(
    "lookups by an id that the batch has already",
    30.0,
    "% of the lookups",
    "own choice: to find out which ids differ takes time as well, more than so few would save",
)
VECTORS = Threshold(
    "vectors that a step looks up",
    1.0,
    "MB",
    "own choice: to copy 1 MB takes about 0.1 ms",
)
META = Meta(
    id="duplicate-ids",
    name="Duplicate ids",
    title_failed="Batches look up the same rows several times",
    title_passed="Few rows are looked up several times in a batch, or that takes little",
    looks_at="Different ids of a batch against all of its ids, in a few batches; what lookups and "
    "gradients of the table take, where the profile tells it.",
    why="A vector is gathered for every id, and its gradient comes back for every id, to be added "
    "up for each row. Words and items are drawn by Zipf's law: a batch has the frequent ones many "
    "times. Where vectors cross to another device, each of them does.",
    edit="`tf.unique`, a lookup by the different ids, and a `tf.gather` from what that gave.",
    cost="`tf.unique` takes time of its own, and the gradient is added up for each row either way. "
    "On a CPU it made the step faster for none of seven tables, with 52 to 88 % of the lookups "
    "repeated: 0.65 to 1.03 times as fast (`benchmarks.embedding_duplicates`). On a GPU it was not "
    "measured. Only the trial tells.",
    bound="None: the step with different ids was not measured.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(REPEATED, VECTORS, OPERATION_SHARE, INPUT_BOUND),
    severity="info",
    effect_on_results="same up to order or rounding",
    tried_when_informing=True,
)
_PARTS: tuple[TablePart, ...] = ("lookup", "gradient")


def check(session: Session) -> list[Finding]:
    """One finding on all tables whose ids repeat, as one edit is of them all."""
    if not session.embeddings:
        return [META.finding("not-applicable", "No embedding table was seen.")]
    seen = [table for table in session.embeddings if table.ids and not table.ids.incomplete]
    if not seen:
        first = session.embeddings[0]
        lack = first.ids.incomplete if first.ids else first.ids_missing
        return [META.finding("inconclusive", lack or "No batch was looked at.")]
    repeated = [table for table in seen if _repeats(table)]
    return [_finding(session, repeated) if repeated else _passed(session, seen)]


def _repeats(table: Embedding) -> bool:
    megabytes = _lookups([table]) * vector_bytes(table) / 1e6
    return _percent([table]) >= REPEATED.value and megabytes >= VECTORS.value


def _passed(session: Session, tables: list[Embedding]) -> Finding:
    return META.finding("pass", "", evidence=_evidence(session, tables))


def _finding(session: Session, tables: list[Embedding]) -> Finding:
    evidence = _evidence(session, tables)
    took = percent_of_step(session, parts_ms(session, tables, _PARTS))
    if took is not None and took < OPERATION_SHARE.value:
        return META.finding("pass", "", evidence=evidence)
    if waits := input_first(session):
        return META.finding("informative", waits, evidence=evidence)
    loop = session.diagnosed_loop()
    return META.finding(
        "informative",
        _advice(session, tables, took),
        place=(loop.file, loop.line) if loop else None,
        evidence=evidence,
        edit=different_ids(session, META.id),
    )


def _advice(session: Session, tables: list[Embedding], took: float | None) -> str:
    takes = (
        "What lookups and gradients take of a step was not told apart."
        if took is None
        else f"Lookups and gradients of {names_of(tables)} take {took:.0f} % of the step."
    )
    return (
        f"A step looks up {_lookups(tables):,.0f} ids in {names_of(tables)}, "
        f"{_different(tables):,.0f} of them different.{_shared(session)} {takes} `tf.unique` "
        f"before the lookup and `tf.gather` behind it give the same vectors, {_outlook(session)}."
    )


def _shared(session: Session) -> str:
    loop = session.diagnosed_loop()
    if loop is None or loop.replicas == 1:
        return ""
    return f" {loop.replicas} replicas share them, so that fewer repeat in the part of each."


def _outlook(session: Session) -> str:
    if accelerators(session.devices):
        return "and may as well take longer"
    return (
        "but on a CPU made the step faster for no table that was measured: leave the lookup as it "
        "is unless the trial tells otherwise"
    )


def _evidence(session: Session, tables: list[Embedding]) -> dict[str, Scalar]:
    took = parts_ms(session, tables, _PARTS)
    return {
        "layer": tables[0].layer,
        "tables": len(tables),
        "lookups_per_step": _lookups(tables),
        "different_per_step": _different(tables),
        "repeated_percent": _percent(tables),
        "vector_megabytes_per_step": sum(_lookups([one]) * vector_bytes(one) for one in tables)
        / 1e6,
        "took_ms_per_step": took,
        "took_percent_of_step": percent_of_step(session, took),
    }


def _lookups(tables: list[Embedding]) -> float:
    return sum(table.ids.lookups_per_step for table in tables if table.ids)


def _different(tables: list[Embedding]) -> float:
    return sum(table.ids.unique_per_step for table in tables if table.ids)


def _percent(tables: list[Embedding]) -> float:
    lookups = _lookups(tables)
    return 100.0 * (1.0 - _different(tables) / lookups) if lookups else 0.0
