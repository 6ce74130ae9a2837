"""Ids that are not what was meant: outside the table, rounded by a float type, or masked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from pipediag.facts.embeddings import WITHIN, masks_a_token, within_percent
from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding, EmbeddingIds
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

IDS_OUTSIDE_TABLE = Meta(
    id="embedding-ids",
    name="Ids outside the table",
    title_failed="Look up only ids that the embedding table has a row for",
    title_passed="All ids that were looked at have a row in their embedding table",
    why="On a CPU such a lookup raises. On a GPU it gives a vector of zeros and trains nothing, "
    "and XLA on a CPU takes the last row, both without a word.",
    edit="`input_dim` of at least the largest id plus one, or ids that are mapped into the table.",
    cost="More rows take more memory.",
    needs=(),
    severity="error",
    effect_on_results="mends results",
    subject="correctness",
    untried="It is about what the model learns, which a trial of speed can't tell.",
)
COLLIDING_IDS = replace(
    IDS_OUTSIDE_TABLE,
    name="Ids through a float",
    title_failed="Keep ids integers on their way to the embedding table",
    title_passed="Ids reach their embedding table as they are",
    why="A float holds integers exactly up to 256 in bfloat16, 2,048 in float16. Keras casts "
    "inputs to one where the model has no `Input` with an integer `dtype`.",
    edit='`keras.Input(shape, dtype="int32")` in front of the Embedding.',
    cost="None.",
    needs=("loop",),
)
MASKED_TOKEN = replace(
    IDS_OUTSIDE_TABLE,
    name="Masked token",
    title_failed="Keep id 0 for padding where `mask_zero` hides it",
    title_passed="Id 0 is padding wherever it is masked",
    why="Layers behind the Embedding skip what is masked, so the token with id 0 is never seen.",
    edit="Ids from 1 on, `input_dim` one larger; or a `mask_token` in the lookup layer.",
    cost="One more row.",
    needs=("loop",),
    thresholds=(WITHIN,),
)


def _of_tables(
    meta: Meta,
    tables: list[Embedding],
    absent: str,
    found: Callable[[Embedding, EmbeddingIds], Finding | None],
) -> list[Finding]:
    """Return the findings on tables whose ids were looked at, or why there are none."""
    if not tables:
        return [meta.finding("not-applicable", absent)]
    seen = [(table, table.ids) for table in tables if table.ids is not None]
    if not seen:
        reason = tables[0].ids_missing or "No batch was looked at."
        return [meta.finding("inconclusive", reason, evidence={"layer": tables[0].layer})]
    return [finding for table, ids in seen if (finding := found(table, ids)) is not None]


_NO_TABLE = "No embedding table was seen."
_RAISED = re.compile(r"indices\[[\d,]*\] = (-?\d+) is not in \[0, (\d+)\)")
"""The message of TensorFlow's gathers on a CPU."""


def check_ids_outside_table(session: Session) -> list[Finding]:
    """Return a finding on each table with such ids, or on the error that ended the script."""
    raised = _RAISED.search(session.script.detail or "")
    if raised is not None:
        return [_ended_by(session, int(raised[1]), int(raised[2]))]
    return _of_tables(IDS_OUTSIDE_TABLE, session.embeddings, _NO_TABLE, _outside)


def _ended_by(session: Session, id: int, rows: int) -> Finding:
    loop = session.diagnosed_loop() or next(iter(session.loops), None)
    batch = loop.steps if loop else None
    tables = [table.layer for table in session.embeddings if table.rows == rows]
    where = f"`{tables[0]}`" if len(tables) == 1 else f"a table of {rows} rows"
    when = f" in batch {batch} of its loop" if batch else ""
    return IDS_OUTSIDE_TABLE.finding(
        "fail",
        f"Make the table larger, or correct the ids. The script ended{when} because id {id} was "
        f"looked up in {where}, which has rows 0 to {rows - 1}.",
        place=(loop.file, loop.line) if loop else None,
        evidence={"id": id, "rows": rows, "batch": batch, "known_from": "the script's error"},
    )


def _outside(table: Embedding, ids: EmbeddingIds) -> Finding | None:
    if not ids.outside:
        return None
    examples = ", ".join(f"{id} in batch {batch}" for batch, id in ids.outside_examples)
    follows = "A GPU gives zeros for them, and XLA on a CPU the last row, without an error."
    if ids.smallest < 0 and all(id < 0 for _, id in ids.outside_examples):
        follows = "Keras counts negative ids from the end of the table, where other rows are."
    return IDS_OUTSIDE_TABLE.finding(
        "fail",
        f"Make the table larger, or correct the ids. `{table.layer}` has rows 0 to "
        f"{table.rows - 1}, and is looked up by ids outside of them: {examples}. {follows}",
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


_EXACT_BITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Bits of a float's significand: integers up to two to that power are exact (IEEE 754; bfloat16 as
TensorFlow has it)."""


def check_colliding_ids(session: Session) -> list[Finding]:
    """Return a finding on each table whose ids pass a float that can't hold all of its rows."""
    return _of_tables(COLLIDING_IDS, session.embeddings, _NO_TABLE, _colliding)


def _colliding(table: Embedding, ids: EmbeddingIds) -> Finding | None:
    bits = _EXACT_BITS.get(ids.cast_through or "")
    if bits is None:
        return None
    exact: int = 2**bits
    if not ids.changed and table.rows - 1 <= exact:
        return None
    come = "are cast to" if ids.changed or ids.cast_from else "come as"
    shown = f"some of the {table.rows} rows can't be reached."
    if ids.changed:
        shown = ", ".join(f"{before} becomes {after}" for before, after in ids.changed_examples)
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
    return COLLIDING_IDS.finding(
        "fail",
        'Put `keras.Input(..., dtype="int32")` in front of the Embedding, so that ids stay '
        f"integers. On their way to `{table.layer}`, they {come} {ids.cast_through}, which rounds "
        f"integers above {exact}: {shown}",
        evidence=evidence,
        severity=None if ids.changed else "warn",
    )


def check_masked_token(session: Session) -> list[Finding]:
    """Return a finding on each table whose zeros are no padding."""
    masked = [table for table in session.embeddings if table.mask_zero]
    return _of_tables(MASKED_TOKEN, masked, "No embedding masks id 0.", _masked)


def _masked(table: Embedding, ids: EmbeddingIds) -> Finding | None:
    if not masks_a_token(table):
        return None
    why = (
        f"Let ids of tokens begin with 1, or leave `mask_zero` out. {ids.zeros_within} zeros of "
        f"{ids.lookups} ids of `{table.layer}` stand between other ids of their row."
    )
    if ids.zero_is_a_token:
        why = (
            f"Give the lookup layer in front of `{table.layer}` a `mask_token`, or leave "
            "`mask_zero` out: it gives 0 for a token."
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
