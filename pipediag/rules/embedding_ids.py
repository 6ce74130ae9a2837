"""Ids that are not what was meant: outside the table, rounded by a float type, or masked."""

from __future__ import annotations

import re

from pipediag.facts.embeddings import WITHIN, masks_a_token, within_percent
from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding, EmbeddingIds
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

IDS_OUTSIDE_TABLE = Meta(
    id="embedding-ids",
    name="Ids outside the table",
    title_failed="Ids are looked up that the embedding table has no row for",
    title_passed="All ids that were looked at have a row in their embedding table",
    why="On a CPU such a lookup raises. On a GPU it gives a vector of zeros and trains nothing, "
    "and XLA on a CPU takes the last row, both without a word.",
    edit="`input_dim` of at least the largest id plus one, or ids that are mapped into the table.",
    cost="More rows take more memory.",
    needs=(),
    thresholds=(),
    severity="error",
    effect_on_results="mends results",
    subject="correctness",
    untried="It is about what the model learns, which a trial of speed can't tell.",
)

_RAISED = re.compile(r"indices\[[\d,]*\] = (-?\d+) is not in \[0, (\d+)\)")
"""What TensorFlow's gathers say on a CPU."""


def check_ids_outside_table(session: Session) -> list[Finding]:
    """One finding for each table with such ids, or on the error that ended the script."""
    raised = _RAISED.search(session.script.detail or "")
    if raised is not None:
        return [_ended_by(session, int(raised[1]), int(raised[2]))]
    seen = [(table, table.ids) for table in session.embeddings if table.ids is not None]
    if not seen:
        return [_outside_nothing_seen(session)]
    outside = [_outside_finding(table, ids) for table, ids in seen if ids.outside]
    return outside or [IDS_OUTSIDE_TABLE.finding("pass", "", evidence={"tables": len(seen)})]


def _outside_nothing_seen(session: Session) -> Finding:
    if not session.embeddings:
        return IDS_OUTSIDE_TABLE.finding("not-applicable", "No embedding table was seen.")
    table = session.embeddings[0]
    reason = table.ids_missing or "No batch was looked at."
    return IDS_OUTSIDE_TABLE.finding("inconclusive", reason, evidence={"layer": table.layer})


def _ended_by(session: Session, id: int, rows: int) -> Finding:
    loop = session.diagnosed_loop() or next(iter(session.loops), None)
    batch = loop.steps if loop else None
    tables = [table.layer for table in session.embeddings if table.rows == rows]
    where = f"`{tables[0]}`" if len(tables) == 1 else f"a table of {rows} rows"
    when = f" in batch {batch} of its loop" if batch else ""
    return IDS_OUTSIDE_TABLE.finding(
        "fail",
        f"Make the table larger, or mend the ids. The script ended{when} because id {id} was "
        f"looked up in {where}, which has rows 0 to {rows - 1}.",
        place=(loop.file, loop.line) if loop else None,
        evidence={"id": id, "rows": rows, "batch": batch, "known_from": "the script's error"},
    )


def _outside_finding(table: Embedding, ids: EmbeddingIds) -> Finding:
    examples = ", ".join(f"{id} in batch {batch}" for batch, id in ids.outside_examples)
    return IDS_OUTSIDE_TABLE.finding(
        "fail",
        f"Make the table larger, or mend the ids. `{table.layer}` has rows 0 to {table.rows - 1}, "
        f"and is looked up by ids outside of them: {examples}. {_what_follows(ids)}",
        evidence={
            "layer": table.layer,
            "rows": table.rows,
            "smallest_id": ids.smallest,
            "largest_id": ids.largest,
            "outside": ids.outside,
            "lookups": ids.lookups,
            "batches": ids.batches,
            "known_from": "ids of batches",
        },
    )


def _what_follows(ids: EmbeddingIds) -> str:
    if ids.smallest < 0 and all(id < 0 for _, id in ids.outside_examples):
        return "Keras counts negative ids from the end of the table, where other rows are."
    return "A GPU gives zeros for them, and XLA on a CPU the last row, without an error."


_EXACT_BITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Bits of a float's significand: integers up to two to that power are exact (IEEE 754; bfloat16 as
TensorFlow has it)."""

COLLIDING_IDS = Meta(
    id="embedding-ids",
    name="Ids through a float",
    title_failed="Different ids look up the same row, as they pass a float type",
    title_passed="Ids reach their embedding table as they are",
    why="A float holds integers exactly up to a limit: 256 in bfloat16, 2,048 in float16, "
    "16,777,216 in float32. Keras casts inputs to a float where the model has no `Input` with an "
    "integer `dtype`, and to 16 bits under a mixed policy.",
    edit='`keras.Input(shape, dtype="int32")` in front of the Embedding.',
    cost="None.",
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


def check_colliding_ids(session: Session) -> list[Finding]:
    """One finding for each table whose ids pass a float that does not hold all of its rows."""
    seen = [(table, table.ids) for table in session.embeddings if table.ids is not None]
    if not seen:
        return [_colliding_nothing_seen(session)]
    found = [one for table, ids in seen if (one := _colliding_finding(table, ids)) is not None]
    return found or [COLLIDING_IDS.finding("pass", "", evidence={"tables": len(seen)})]


def _colliding_nothing_seen(session: Session) -> Finding:
    if not session.embeddings:
        return COLLIDING_IDS.finding("not-applicable", "No embedding table was seen.")
    return COLLIDING_IDS.finding(
        "inconclusive", session.embeddings[0].ids_missing or "No batch was looked at."
    )


def _colliding_finding(table: Embedding, ids: EmbeddingIds) -> Finding | None:
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
        return COLLIDING_IDS.finding("fail", advice, evidence=evidence)
    if table.rows - 1 <= exact:
        return None
    advice = (
        f"{_MEND} On their way to `{table.layer}`, they {_come(ids)} {ids.cast_through}, which "
        f"rounds integers above {exact}; the table has {table.rows} rows, of which some can't be "
        f"reached. In the {ids.batches} batches that were looked at, no id was changed."
    )
    return COLLIDING_IDS.finding("fail", advice, evidence=evidence, severity="warn")


def _exact(through: str | None) -> int | None:
    """The integer up to which the type holds all; None for no float, or one that is not known."""
    bits = _EXACT_BITS.get(through or "")
    return None if bits is None else int(2**bits)


def _come(ids: EmbeddingIds) -> str:
    return "are cast to" if ids.cast_from else "come as"


MASKED_TOKEN = Meta(
    id="embedding-ids",
    name="Masked token",
    title_failed="`mask_zero` hides a token that stands for something",
    title_passed="Id 0 is padding wherever it is masked",
    why="Layers behind the Embedding skip what is masked, so the token with id 0 is never seen.",
    edit="Ids from 1 on, `input_dim` one larger; or a `mask_token` in the lookup layer.",
    cost="One more row.",
    needs=("loop",),
    thresholds=(WITHIN,),
    severity="error",
    effect_on_results="mends results",
    subject="correctness",
    untried="It is about what the model learns, which a trial of speed can't tell.",
)


def check_masked_token(session: Session) -> list[Finding]:
    """One finding for each table whose zeros are no padding."""
    masked = [table for table in session.embeddings if table.mask_zero]
    if not masked:
        return [MASKED_TOKEN.finding("not-applicable", "No embedding masks id 0.")]
    seen = [(table, table.ids) for table in masked if table.ids is not None]
    if not seen:
        return [
            MASKED_TOKEN.finding("inconclusive", masked[0].ids_missing or "No batch was looked at.")
        ]
    found = [_masked_finding(table, ids) for table, ids in seen if masks_a_token(table)]
    return found or [MASKED_TOKEN.finding("pass", "", evidence={"tables": len(seen)})]


def _masked_finding(table: Embedding, ids: EmbeddingIds) -> Finding:
    if ids.zero_is_a_token:
        why = (
            f"Give the lookup layer in front of `{table.layer}` a `mask_token`, or leave "
            "`mask_zero` out. As it is, it gives 0 for a token, and `mask_zero` hides it."
        )
    else:
        why = (
            "Let ids of tokens begin with 1, or leave `mask_zero` out. "
            f"{ids.zeros_within} zeros of {ids.lookups} ids of `{table.layer}` stand between other "
            "ids of their row, where no padding is, and `mask_zero` hides them."
        )
    return MASKED_TOKEN.finding(
        "fail",
        why,
        evidence={
            "layer": table.layer,
            "zero_percent": ids.zero_percent,
            "zeros_within": ids.zeros_within,
            "zeros_within_percent": within_percent(ids),
            "zero_is_a_token": ids.zero_is_a_token,
            "batches": ids.batches,
        },
    )
