"""Batches that are padded to their longest example, whatever their lengths."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.padding import padded_percent
from pipediag.facts.pipeline import call_name, operations, place_name
from pipediag.facts.shapes import lengths_vary
from pipediag.facts.step import class_percent
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, Replace
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

COMPUTE = Threshold(
    "device compute",
    30.0,
    "% of the step",
    "own choice: padding is computed on, and below this even half as much of it gains little",
)
PADDED = Threshold(
    "padding",
    10.0,
    "% of the ids",
    "own choice: bucketing leaves some of it, and below this there is next to nothing to gain",
)
META = Meta(
    id="padding",
    name="Padding",
    title_failed="Batches are padded to their longest example",
    title_informative="Batches are padded to their longest example; how far was not measured",
    title_passed="Padding hardly weighs",
    looks_at="padded_batch where the batches' shapes have an unknown dimension behind the first, "
    "in a loop whose time goes to compute; how much of the ids of an Embedding with `mask_zero` is "
    "padding, in a few batches.",
    why="A model computes on padding as on data. Batches of similar lengths hold less of it, which "
    "is worth the other order only if lengths differ much: a trial tells.",
    edit="`bucket_by_sequence_length(...)` in place of `padded_batch`.",
    cost="Examples of similar length stand together in a batch, so that batches are mixed less; "
    "one batch is gathered for each bucket, in memory.",
    prediction="None: batches of similar length hold less padding, but how much less depends on "
    "the order in which they come.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(COMPUTE, PADDED, INPUT_BOUND),
    severity="info",
    effect_on_results="same up to order or rounding",
    tried_when_informing=True,
)

BUCKETS = 4


def check(session: Session) -> list[Finding]:
    """One finding on the last padded_batch."""
    padded = operations(session, "padded_batch")
    if not padded:
        return [META.finding("not-applicable", "The pipeline pads no batches.")]
    return [_finding(session, padded[-1])]


def _finding(session: Session, op: Operation) -> Finding:
    loop = session.diagnosed_loop()
    spec = loop.element_spec if loop else None
    percent = class_percent(session, ["device_compute"])
    padded = padded_percent(session)
    evidence = {"device_compute_percent": percent, "element_spec": spec, "padding_percent": padded}
    if spec is None:
        advice = "The shapes of the batches are not known."
        return META.finding("inconclusive", advice, op=op, evidence=evidence)
    if not lengths_vary(spec):
        advice = "Every batch has the same length, which bucketing would change."
        return META.finding("pass", advice, op=op, evidence=evidence)
    if percent < COMPUTE.value or input_first(session):
        return META.finding("pass", "", op=op, evidence=evidence)
    if padded is not None and padded < PADDED.value:
        return META.finding("pass", "", op=op, evidence=evidence)
    known = (
        "If lengths differ much," if padded is None else f"{padded:.0f} % of the ids are padding:"
    )
    advice = (
        f"{known} give `bucket_by_sequence_length` to the data in place of "
        f"{call_name(op)}, so that batches hold examples of similar length and less padding."
    )
    title = None if padded is None else META.title_failed
    return META.finding(
        "informative", advice, op=op, evidence=evidence, edit=_edit(op), title=title
    )


def _edit(op: Operation) -> Edit:
    return Edit(
        id=f"{META.id}:{op.id}",
        label=f"{BUCKETS} buckets of lengths in place of the {place_name(op)}",
        changes=(Replace(op.id, "bucket_by_sequence_length", {"buckets": BUCKETS}),),
        check="shape",
    )
