"""A large table that a strategy mirrors: gradients exchanged in full, or copies of gigabytes."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.step import class_percent
from pipediag.facts.table_sizes import LARGE, large
from pipediag.rules.embedding.sizes import names_of
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta
from pipediag.session.embeddings import Embedding
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

EXCHANGE = Threshold(
    "collectives and device compute",
    30.0,
    "% of the step",
    "own choice: the exchange is one or the other, by the device, and below this even all of it "
    "gains little",
)
MIRRORED = Threshold(
    "tables and slots that each replica holds",
    1000.0,
    "MB",
    "own choice: a GPU has ten times that and more",
)
META = Meta(
    id="mirrored-table",
    name="Mirrored table",
    title_failed="Replicas exchange a gradient as large as an embedding table in every step",
    title_informative="Each replica holds all of an embedding table",
    title_passed="Replicas exchange the rows of their batches, and their tables are small",
    looks_at="The graph of the traced step of several replicas: whether a tensor as large as a "
    "table is added up over them; and bytes of tables and slots, which each of them holds.",
    why="A gradient that comes as rows is exchanged as rows. A norm over all gradients, a "
    "regulariser, or any other use of the whole table makes it as large as the table before it is "
    "exchanged. The copies of the table themselves take memory on each device.",
    edit="What makes the gradient dense left out; rows divided over the devices in place of "
    "copies, where memory is short.",
    cost="Another clipping or another objective is another optimisation. Divided rows need code of "
    "your own: Keras 3 has no such layer on TensorFlow.",
    bound="None: the exchange of rows was not measured.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(LARGE, EXCHANGE, MIRRORED, INPUT_BOUND),
    severity="warn",
    effect_on_results="changes a hyper-parameter",
    frees=("collective", "device_compute"),
    yields_to=("dense-embedding-update", "regularized-table"),
    untried="Steps of several replicas are not held for trials.",
)


def check(session: Session) -> list[Finding]:
    """One finding on all tables that are exchanged in full, or else on what is mirrored."""
    loop = session.diagnosed_loop()
    assert loop is not None
    tables = [table for table in large(session.embeddings) if table.trainable]
    if loop.replicas < 2 or not tables:
        lacks = "No large table is trained on several replicas."
        return [META.finding("not-applicable", lacks)]
    whole = [table for table in tables if table.exchanged == "dense"]
    if whole:
        return [_exchanged(session, loop, whole)]
    held = sum(table.table_bytes + (table.slot_bytes or 0) for table in tables)
    if held >= MIRRORED.value * 1e6:
        return [_mirrored(loop, tables, held)]
    if any(table.exchanged is None for table in tables):
        unread = next(table for table in tables if table.exchanged is None)
        reason = unread.missing or f"How the gradient of {unread.layer} is exchanged was not seen."
        return [META.finding("inconclusive", reason, evidence=_evidence(loop, [unread]))]
    return [META.finding("pass", "", evidence=_evidence(loop, tables))]


def _exchanged(session: Session, loop: Loop, tables: list[Embedding]) -> Finding:
    share = class_percent(session, ["collective", "device_compute"])
    evidence = {**_evidence(loop, tables), "exchange_and_compute_percent": share}
    megabytes = sum(table.table_bytes for table in tables) / 1e6
    advice = (
        f"{_cause(loop, tables)} {loop.replicas} replicas add up {megabytes:.0f} MB of gradients "
        f"in each step, as large as {names_of(tables)}."
    )
    if share < EXCHANGE.value:
        advice = f"{advice} Here only {share:.0f} % of the step is compute or exchange."
        return META.finding("informative", advice, evidence=evidence, title=META.title_failed)
    if waits := input_first(session):
        return META.finding("informative", waits, evidence=evidence, title=META.title_failed)
    return META.finding(
        "fail",
        advice,
        place=(loop.file, loop.line),
        evidence=evidence,
    )


def _cause(loop: Loop, tables: list[Embedding]) -> str:
    settings = loop.keras.optimizer_settings if loop.keras else {}
    if any(table.regularizer for table in tables):
        return (
            "Leave `embeddings_regularizer` out, which makes gradients as large as the table: see "
            "`regularized-table`."
        )
    if "global_clipnorm" in settings:
        return (
            "Clip by `clipnorm`, which takes each gradient by itself and leaves it as rows: "
            "`global_clipnorm` makes them whole before they are exchanged."
        )
    return (
        "Look for what makes gradients whole before they are exchanged: a norm over all of them, "
        "weights that are tied to the table, a scaling of the loss."
    )


def _mirrored(loop: Loop, tables: list[Embedding], held: int) -> Finding:
    each = held / loop.replicas / 1e6
    return META.finding(
        "informative",
        f"Each of {loop.replicas} replicas holds all of {names_of(tables)} with its slots, "
        f"{held / 1e6:.0f} MB. Rows divided over them would take {each:.0f} MB each, and rows of "
        "the batch would travel.",
        place=(loop.file, loop.line),
        evidence={**_evidence(loop, tables), "held_bytes": held},
    )


def _evidence(loop: Loop, tables: list[Embedding]) -> dict[str, Scalar]:
    return {
        "layer": tables[0].layer,
        "tables": len(tables),
        "strategy": loop.strategy,
        "replicas": loop.replicas,
        "exchanged": tables[0].exchanged,
        "table_bytes": sum(table.table_bytes for table in tables),
    }
