"""Ids for which an embedding table has no row."""

from __future__ import annotations

import re

from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding, EmbeddingIds
from pipediag.session.findings import Finding
from pipediag.session.model import Session

META = Meta(
    id="ids-outside-table",
    name="Ids outside the table",
    title_failed="Ids are looked up that the embedding table has no row for",
    title_passed="All ids that were looked at have a row in their embedding table",
    looks_at="The smallest and largest id of a few batches against the rows of the table, and the "
    "error that ended a script.",
    why="On a CPU such a lookup raises. On a GPU it gives a vector of zeros and trains nothing, "
    "and XLA on a CPU takes the last row, both without a word. Keras 3 takes negative ids for rows "
    "counted from the table's end.",
    edit="`input_dim` of at least the largest id plus one, or ids that are mapped into the table.",
    cost="More rows take more memory.",
    bound="None: it is about results, not about speed.",
    needs=(),
    thresholds=(),
    severity="error",
    effect_on_results="mends results",
    subject="correctness",
    untried="It is about what the model learns, which a trial of speed can't tell.",
)

_RAISED = re.compile(r"indices\[[\d,]*\] = (-?\d+) is not in \[0, (\d+)\)")
"""What TensorFlow's gathers say on a CPU."""


def check(session: Session) -> list[Finding]:
    """One finding for each table with such ids, or on the error that ended the script."""
    raised = _RAISED.search(session.script.detail or "")
    if raised is not None:
        return [_ended_by(session, int(raised[1]), int(raised[2]))]
    seen = [(table, table.ids) for table in session.embeddings if table.ids is not None]
    if not seen:
        return [_nothing_seen(session)]
    outside = [_finding(table, ids) for table, ids in seen if ids.outside]
    return outside or [META.finding("pass", "", evidence={"tables": len(seen)})]


def _nothing_seen(session: Session) -> Finding:
    if not session.embeddings:
        return META.finding("not-applicable", "No embedding table was seen.")
    table = session.embeddings[0]
    reason = table.ids_missing or "No batch was looked at."
    return META.finding("inconclusive", reason, evidence={"layer": table.layer})


def _ended_by(session: Session, id: int, rows: int) -> Finding:
    loop = session.diagnosed_loop() or next(iter(session.loops), None)
    batch = loop.steps if loop else None
    tables = [table.layer for table in session.embeddings if table.rows == rows]
    where = f"`{tables[0]}`" if len(tables) == 1 else f"a table of {rows} rows"
    when = f" in batch {batch} of its loop" if batch else ""
    return META.finding(
        "fail",
        f"Make the table larger, or mend the ids. The script ended{when} because id {id} was "
        f"looked up in {where}, which has rows 0 to {rows - 1}.",
        place=(loop.file, loop.line) if loop else None,
        evidence={"id": id, "rows": rows, "batch": batch, "known_from": "the script's error"},
    )


def _finding(table: Embedding, ids: EmbeddingIds) -> Finding:
    examples = ", ".join(f"{id} in batch {batch}" for batch, id in ids.outside_examples)
    return META.finding(
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
