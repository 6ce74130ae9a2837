"""Ids that come in 8 bytes, where their table has a row for fewer than 4 bytes can count."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.rules.embedding.copied import judged_by_copies
from pipediag.rules.embedding.sizes import names_of
from pipediag.rules.pipeline.widened_ids import COPIED
from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

SAVED = Threshold(
    "bytes of ids that a step would have less",
    1.0,
    "MB",
    "own choice: to copy 1 MB takes about 0.1 ms",
)
META = Meta(
    id="wide-ids",
    name="Wide ids",
    title_failed="Ids are shipped in 8 bytes where 4 would do",
    title_passed="Ids take no more bytes than matter",
    looks_at="The type of the ids in the batch, how many a step looks up, and rows of the table.",
    why="NumPy's integers, string lookups and hashes have 8 bytes. A table of less than two "
    "billion rows needs 4, and Keras' `Embedding` looks up by 4 whatever it is given: the other "
    "half is batched, buffered, cached and copied to the device for nothing.",
    edit='`tf.cast(ids, "int32")` in the pipeline, or `array.astype("int32")` before it.',
    cost="None: ids that have a row fit.",
    bound="None: the step with shorter ids was not measured.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(SAVED, COPIED, INPUT_BOUND),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait", "device_copy"),
    untried="It changes the type of what the pipeline hands out, which the model was traced for.",
)
_WIDE = ("int64", "uint64")
_SAVED_OF_AN_ID = 4


def check(session: Session) -> list[Finding]:
    """One finding on all tables with such ids."""
    if not session.embeddings:
        return [META.finding("not-applicable", "No embedding table was seen.")]
    seen = [table for table in session.embeddings if table.ids is not None]
    if not seen:
        reason = session.embeddings[0].ids_missing or "No batch was looked at."
        return [META.finding("inconclusive", reason)]
    wide = [table for table in seen if table.ids and table.ids.dtype in _WIDE]
    megabytes = _saved_bytes(wide) / 1e6
    if megabytes < SAVED.value:
        return [META.finding("pass", "", evidence=_evidence(seen, megabytes))]
    return [_finding(session, wide, megabytes)]


def _finding(session: Session, tables: list[Embedding], megabytes: float) -> Finding:
    advice = (
        f'Cast ids of {names_of(tables)} to "int32" as early in the pipeline as they are made, so '
        "that buffers, caches and copies hold half as much. They come in 8 bytes: "
        f"{megabytes:.1f} MB of a step are zeros."
    )
    evidence = _evidence(tables, megabytes)
    return judged_by_copies(META, session, advice, evidence)


def _saved_bytes(tables: list[Embedding]) -> float:
    """Of a step; tables with all the same figures are looked up by the same ids, shipped once."""
    each_once = {
        (one.lookups, one.unique, one.smallest, one.largest): one.lookups_per_step
        for one in (table.ids for table in tables)
        if one is not None
    }
    return _SAVED_OF_AN_ID * sum(each_once.values())


def _evidence(tables: list[Embedding], megabytes: float) -> dict[str, Scalar]:
    ids = tables[0].ids
    return {
        "layer": tables[0].layer,
        "tables": len(tables),
        "rows": tables[0].rows,
        "ids_dtype": ids.dtype if ids else None,
        "lookups_per_step": ids.lookups_per_step if ids else None,
        "saved_megabytes_per_step": megabytes,
    }
