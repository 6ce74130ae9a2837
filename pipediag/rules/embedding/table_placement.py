"""An embedding table on the wrong device for its size: on the host, or more than the GPU holds."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.machine import gpu_memory_bytes, on_accelerator
from pipediag.facts.memory_plan import table_peak_bytes
from pipediag.facts.table_sizes import LARGE, large
from pipediag.rules.embedding.copied import judged_by_copies
from pipediag.rules.embedding.sizes import names_of, vector_bytes
from pipediag.rules.pipeline.widened_ids import COPIED
from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

ROOM = Threshold(
    "tables with slots and temporaries",
    50.0,
    "% of the GPU's memory",
    "own choice: activations and the rest of the model need room as well",
)
FULL = Threshold(
    "tables with slots and temporaries on the GPU",
    80.0,
    "% of the GPU's memory",
    "own choice: one more tensor of a table's size, as was seen of Adam's, ends the training there",
)
META = Meta(
    id="table-placement",
    name="Table placement",
    title_failed="A table stands on the host, though the GPU has room for it",
    title_informative="A table stands on the host, or fills the GPU",
    title_passed="Tables stand where they have room",
    looks_at="The device of each large table against the memory of the GPU, by what the table "
    "takes with its slots and what its update makes of its size.",
    why="Rows of a table on the host cross to the GPU in each step, and their gradients cross "
    "back. A table that fills the GPU leaves no room for a batch more or a longer one.",
    edit="No `tf.device` around the table where it fits; where it does not, one of the ways out "
    "that the memory plan lists.",
    cost="Memory of the GPU.",
    bound="None: the step with the table elsewhere was not measured.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(LARGE, ROOM, FULL, COPIED, INPUT_BOUND),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("device_copy",),
    untried="A variable stays where it was made; pipediag can't move it in a running loop.",
)


def check(session: Session) -> list[Finding]:
    """One finding on all large tables that are on the wrong device, or what is known of them."""
    tables = large(session.embeddings)
    if not tables or not on_accelerator(session.environment.devices):
        lacks = "There is no GPU, or the model has no large embedding table."
        return [META.finding("not-applicable", lacks)]
    unknown = [table for table in tables if table.device is None]
    if unknown:
        reason = unknown[0].missing or f"Where {unknown[0].layer} stands was not seen."
        return [META.finding("inconclusive", reason, evidence={"layer": unknown[0].layer})]
    memory = gpu_memory_bytes(session)
    if memory is None:
        return [META.finding("inconclusive", "How much memory the GPU has is not known.")]
    percent = 100.0 * sum(_held(session, table) for table in tables) / memory
    away = [table for table in tables if not _on_gpu(table)]
    evidence = _evidence(away or tables, memory, percent)
    if away and percent < ROOM.value:
        return [_on_host(session, away, evidence)]
    here = 100.0 * sum(_held(session, one) for one in tables if _on_gpu(one)) / memory
    if here >= FULL.value:
        return [_full(tables, here, evidence)]
    return [META.finding("pass", "", evidence=evidence)]


def _on_gpu(table: Embedding) -> bool:
    return "GPU" in (table.device or "")


def _held(session: Session, table: Embedding) -> int:
    return table_peak_bytes(session, table)


def _on_host(session: Session, tables: list[Embedding], evidence: dict[str, Scalar]) -> Finding:
    advice = (
        f"Leave `tf.device` out where {names_of(tables)} is made, which stands on the host. "
        "With its slots it would take "
        f"{evidence['percent_of_gpu_memory']:.0f} % of the GPU's memory, and {_crosses(tables)}."
    )
    return judged_by_copies(META, session, advice, evidence)


def _crosses(tables: list[Embedding]) -> str:
    """What of them goes to the GPU in a step."""
    seen = [(table, table.ids) for table in tables if table.ids is not None]
    if not seen:
        return "its rows cross to the GPU in each step"
    megabytes = sum(ids.lookups_per_step * vector_bytes(table) for table, ids in seen) / 1e6
    return f"{megabytes:.3g} MB of vectors cross to it in each step"


def _full(tables: list[Embedding], percent: float, evidence: dict[str, Scalar]) -> Finding:
    return META.finding(
        "informative",
        f"{names_of(tables)} with slots, and what the update makes of its size, takes "
        f"{percent:.0f} % of the GPU's memory. The memory plan says what changes of "
        "it would save.",
        evidence=evidence,
    )


def _evidence(tables: list[Embedding], memory: int, percent: float) -> dict[str, Scalar]:
    return {
        "layer": tables[0].layer,
        "tables": len(tables),
        "device": tables[0].device,
        "table_bytes": sum(table.table_bytes for table in tables),
        "gpu_memory_bytes": memory,
        "percent_of_gpu_memory": percent,
    }
