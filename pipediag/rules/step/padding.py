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

AT_MOST = Threshold(
    "compute on padding",
    5.0,
    "% of the step: the part that is compute, times the part of the ids that is padding",
    "own choice: the most that batches without padding can save, equal to the limit on input wait",
)
META = Meta(
    id="padding",
    name="Padding",
    title_failed="Batches are padded to their longest example",
    title_informative="Batches are padded to their longest example; how far was not measured",
    title_passed="Padding hardly weighs",
    looks_at="padded_batch where the batches' shapes have an unknown dimension behind the first, "
    "in a loop whose time goes to compute; how much of the ids of an Embedding with `mask_zero` is "
    "padding, in a few batches. Where all batches have one length, as `pad_sequences` and "
    "`output_sequence_length` make them: how many ids are a 0 that is padding, as the Embedding "
    "masks it or the table of tokens gives it for none.",
    why="A model computes on padding as on data. Batches of similar lengths hold less of it, which "
    "is worth the other order only if lengths differ much: a trial tells.",
    edit="`bucket_by_sequence_length(...)` in place of `padded_batch`; where the length is fixed, "
    "a shorter one.",
    cost="Examples of similar length stand together in a batch, so that batches are mixed less; "
    "one batch is gathered for each bucket, in memory. A shorter fixed length cuts "
    "longer examples.",
    bound="None: batches of similar length hold less padding, but how much less depends on "
    "the order in which they come.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(AT_MOST, INPUT_BOUND),
    severity="info",
    effect_on_results="same up to order or rounding",
    tried_when_informing=True,
)

BUCKETS = 4


def check(session: Session) -> list[Finding]:
    """One finding on the last padded_batch, or on batches that are padded to one fixed length."""
    padded = operations(session, "padded_batch")
    loop = session.diagnosed_loop()
    spec = loop.element_spec if loop else None
    if padded and (spec is None or lengths_vary(spec)):
        return [_finding(session, padded[-1])]
    zeros = padded_percent(session)
    if zeros is not None and spec is not None and not lengths_vary(spec):
        return [_of_one_length(session, zeros, padded[-1] if padded else None)]
    if padded:
        return [_finding(session, padded[-1])]
    return [META.finding("not-applicable", "The pipeline pads no batches.")]


def _of_one_length(session: Session, zeros: float, op: Operation | None) -> Finding:
    """Nothing is tried: how long examples are without their padding is not recorded."""
    percent = class_percent(session, ["device_compute"])
    evidence = {"device_compute_percent": percent, "padding_percent": zeros}
    if _is_little(percent, zeros) or input_first(session):
        return META.finding("pass", "", op=op, evidence=evidence)
    loop = session.diagnosed_loop()
    return META.finding(
        "informative",
        f"{zeros:.0f} % of the ids are padding, which the model computes on: pad to a shorter "
        "length (`maxlen`, `output_sequence_length`, `padded_shapes`), which cuts the longest "
        "examples, so that the model learns from less, or pad each batch to its own longest "
        "by `bucket_by_sequence_length`, which cuts none.",
        op=op,
        place=None if op else (loop.file, loop.line) if loop else None,
        evidence=evidence,
        title="Examples are padded to one fixed length",
    )


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
    if _is_little(percent, padded):
        return META.finding("pass", "", op=op, evidence=evidence)
    known = (
        "If lengths differ much," if padded is None else f"{padded:.0f} % of the ids are padding:"
    )
    advice = (
        f"{known} give `bucket_by_sequence_length` to the data in place of "
        f"{call_name(op)}, so that batches hold examples of similar length and less padding."
    )
    if waits := input_first(session):
        advice = f"{waits} {advice}"
    title = None if padded is None else META.title_failed
    return META.finding(
        "informative", advice, op=op, evidence=evidence, edit=_edit(op), title=title
    )


def _is_little(compute_percent: float, padded_percent: float | None) -> bool:
    """Return True where the step computes little on padding, however much of it that is."""
    padded = 100.0 if padded_percent is None else padded_percent
    return compute_percent * padded / 100.0 < AT_MOST.value


def _edit(op: Operation) -> Edit:
    return Edit(
        id=f"{META.id}:{op.id}",
        label=f"{BUCKETS} buckets of lengths in place of the {place_name(op)}",
        changes=(Replace(op.id, "bucket_by_sequence_length", {"buckets": BUCKETS}),),
        check="shape",
    )
