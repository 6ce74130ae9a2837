"""Ids that share a row because they pass a float type on their way to the table."""

from __future__ import annotations

from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding, EmbeddingIds
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

_EXACT_BITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Bits of a float's significand: integers up to two to that power are exact (IEEE 754; bfloat16 as
TensorFlow has it)."""

META = Meta(
    id="colliding-ids",
    name="Ids through a float",
    title_failed="Different ids look up the same row, as they pass a float type",
    title_passed="Ids reach their embedding table as they are",
    looks_at="The types that ids have in the traced step between the batch and the lookup, and "
    "the ids of a few batches before and after.",
    why="A float holds integers exactly up to a limit: 256 in bfloat16, 2,048 in float16, "
    "16,777,216 in float32. Keras casts inputs to a float where the model has no `Input` with an "
    "integer `dtype`, and to 16 bits under a mixed policy. Ids beyond the limit are rounded.",
    edit='`keras.Input(shape, dtype="int32")` in front of the Embedding.',
    cost="None.",
    bound="None: it is about results, not about speed.",
    needs=("loop",),
    thresholds=(),
    severity="error",
    effect_on_results="mends results",
    subject="correctness",
    untried="It is about what the model learns, which a trial of speed can't tell.",
)

_MEND = (
    'Put `keras.Input(..., dtype="int32")` in front of the Embedding, so that ids stay integers.'
)


def check(session: Session) -> list[Finding]:
    """One finding for each table whose ids pass a float that does not hold all of its rows."""
    seen = [(table, table.ids) for table in session.embeddings if table.ids is not None]
    if not seen:
        return [_nothing_seen(session)]
    found = [one for table, ids in seen if (one := _finding(table, ids)) is not None]
    return found or [META.finding("pass", "", evidence={"tables": len(seen)})]


def _nothing_seen(session: Session) -> Finding:
    if not session.embeddings:
        return META.finding("not-applicable", "No embedding table was seen.")
    return META.finding(
        "inconclusive", session.embeddings[0].ids_missing or "No batch was looked at."
    )


def _finding(table: Embedding, ids: EmbeddingIds) -> Finding | None:
    exact = _exact(ids.cast_through)
    if exact is None:
        return None
    evidence: dict[str, Scalar] = {
        "layer": table.layer,
        "cast_through": ids.cast_through,
        "cast_from": ids.cast_from,
        "exact_up_to": exact,
        "rows": table.rows,
        "changed": ids.changed,
        "collided": ids.collided,
        "lookups": ids.lookups,
        "batches": ids.batches,
    }
    if ids.changed:
        pairs = ", ".join(f"{before} becomes {after}" for before, after in ids.changed_examples)
        advice = (
            f"{_MEND} On their way to `{table.layer}`, they are cast to {ids.cast_through}, which "
            f"rounds integers above {exact}: {pairs}."
        )
        return META.finding("fail", advice, evidence=evidence)
    if table.rows - 1 <= exact:
        return None
    advice = (
        f"{_MEND} On their way to `{table.layer}`, they {_come(ids)} {ids.cast_through}, which "
        f"rounds integers above {exact}; the table has {table.rows} rows, of which some can't be "
        f"reached. In the {ids.batches} batches that were looked at, no id was changed."
    )
    return META.finding("fail", advice, evidence=evidence, severity="warn")


def _exact(through: str | None) -> int | None:
    """The integer up to which the type holds all; None for no float, or one that is not known."""
    bits = _EXACT_BITS.get(through or "")
    return None if bits is None else int(2**bits)


def _come(ids: EmbeddingIds) -> str:
    return "are cast to" if ids.cast_from else "come as"
