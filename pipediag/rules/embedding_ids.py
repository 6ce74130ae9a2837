"""Ids that are not what was meant: outside the table, rounded by a float type, or masked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from pipediag.facts.embeddings import WITHIN, masks_a_token, within_percent
from pipediag.rules.rule import Rule
from pipediag.session.findings import Finding
from pipediag.session.loops import Embedding
from pipediag.session.model import Session
from pipediag.session.recorded_loops import EmbeddingIds

_ids_rule = partial(
    Rule,
    id="embedding-ids",
    severity="error",
    effect="corrects results",
    subject="correctness",
    untried="It affects what the model learns, which a speed trial can't show.",
)


def _seen(session: Session) -> list[tuple[Embedding, EmbeddingIds]]:
    return [(table, table.ids) for table in session.embeddings if table.ids is not None]


IDS_OUTSIDE_TABLE = _ids_rule(
    title="Look up only ids that are in the embedding table",
    why="On a CPU, a lookup of an id outside the table raises an error. On a GPU it returns zeros "
    "and trains nothing, and XLA on a CPU uses the last row, both without an error.",
    fix="Set `input_dim` to at least the largest id plus one, or map the ids into the table.",
    needs=(),
)
_RAISED = re.compile(r"indices\[[\d,]*\] = (-?\d+) is not in \[0, (\d+)\)")
"""The message of TensorFlow's gathers on a CPU."""
_LARGER = "Make the table larger, or correct the ids."


@IDS_OUTSIDE_TABLE.found_by
def _check_ids_outside_table(session: Session) -> Iterator[Finding]:
    raised = _RAISED.search(session.script.detail or "")
    if raised is None:
        yield from (_outside(table, ids) for table, ids in _seen(session) if ids.outside)
        if session.embeddings and not _seen(session):
            unseen = session.embeddings[0]
            reason = unseen.ids_missing or "No batch was inspected."
            yield IDS_OUTSIDE_TABLE.finding(
                "inconclusive", reason, evidence={"layer": unseen.layer}
            )
        return
    id, rows = int(raised[1]), int(raised[2])
    loop = session.diagnosed_loop() or next(iter(session.loops), None)
    when = f" in batch {loop.steps} of its loop" if loop and loop.steps else ""
    tables = [table.layer for table in session.embeddings if table.rows == rows]
    where = f"`{tables[0]}`" if len(tables) == 1 else "a table"
    yield IDS_OUTSIDE_TABLE.finding(
        "fail",
        f"{_LARGER} The script ended{when} because id {id} was looked up in {where} of {rows} "
        "rows.",
        place=(loop.file, loop.line) if loop else None,
    )


def _outside(table: Embedding, ids: EmbeddingIds) -> Finding:
    examples = ", ".join(f"{id} in batch {batch}" for batch, id in ids.outside_examples)
    follows = (
        "A GPU returns zeros for them, and XLA on a CPU returns the last row, without an error."
    )
    if all(id < 0 for _, id in ids.outside_examples):
        follows = "Keras counts negative ids from the end of the table, so they read other rows."
    return IDS_OUTSIDE_TABLE.finding(
        "fail",
        f"{_LARGER} `{table.layer}` has rows 0 to {table.rows - 1}, but was looked up with ids "
        f"outside that range: {examples}. {follows}",
        evidence={"layer": table.layer, "ids_outside": ids.outside, "lookups": ids.lookups},
    )


COLLIDING_IDS = _ids_rule(
    title="Keep ids as integers until the embedding lookup",
    why="A float holds integers exactly up to 256 in bfloat16 and up to 2,048 in float16. Keras "
    "casts inputs to floats if the model has no `Input` with an integer `dtype`.",
    fix='Put `keras.Input(shape, dtype="int32")` before the Embedding.',
    needs=("loop",),
)
_EXACT_BITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Bits of a float's significand: integers up to two to that power are exact (IEEE 754; bfloat16 as
TensorFlow has it)."""


@COLLIDING_IDS.found_by
def _check_colliding_ids(session: Session) -> Iterator[Finding]:
    for table, ids in _seen(session):
        if finding := _colliding(table, ids):
            yield finding


def _colliding(table: Embedding, ids: EmbeddingIds) -> Finding | None:
    bits = _EXACT_BITS.get(ids.cast_through or "")
    if bits is None or (not ids.changed and table.rows - 1 <= 2**bits):
        return None
    shown = f"some of the {table.rows} rows can't be reached."
    if ids.changed:
        shown = ", ".join(f"{before} becomes {after}" for before, after in ids.changed_examples)
    return COLLIDING_IDS.finding(
        "fail",
        'Put `keras.Input(..., dtype="int32")` before the Embedding, so that ids stay integers. '
        f"On their way to `{table.layer}`, they pass {ids.cast_through}, which rounds integers "
        f"above {2**bits}: {shown}",
        evidence={"layer": table.layer, "changed": ids.changed},
        severity=None if ids.changed else "warn",
    )


MASKED_TOKEN = _ids_rule(
    title="Reserve id 0 for padding with `mask_zero`",
    why="Layers after the Embedding skip what is masked, so the token with id 0 is never seen.",
    fix="Start ids at 1 with an `input_dim` one larger, or set a `mask_token` in the lookup layer.",
    needs=("loop",),
    thresholds=(WITHIN,),
)


@MASKED_TOKEN.found_by
def _check_masked_token(session: Session) -> Iterator[Finding]:
    for table, ids in _seen(session):
        if masks_a_token(table):
            advice = (
                f"Start token ids at 1, or remove `mask_zero`. {ids.zeros_within} of {ids.lookups} "
                f"ids of `{table.layer}` are zeros between other ids of their row."
            )
            if ids.zero_is_a_token:
                advice = (
                    f"Give the lookup layer before `{table.layer}` a `mask_token`, or remove "
                    "`mask_zero`: the layer returns 0 for a token."
                )
            yield MASKED_TOKEN.finding(
                "fail",
                advice,
                evidence={"layer": table.layer, "zeros_within_percent": within_percent(ids)},
            )
