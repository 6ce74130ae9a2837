"""A shuffle buffer that is filled with costly elements before the first step."""

from __future__ import annotations

import math

from pipediag.rules.plan import (
    call_name,
    delay_ms,
    operations,
    passes_over_data,
    upstream,
)
from pipediag.rules.rule import Meta, Prediction, Threshold
from pipediag.session.model import Finding, Operation, Session
from pipediag.session.record import Scalar

FILL_SHARE = Threshold(
    "time to fill the buffer",
    5.0,
    "% of the whole training loop",
    "own choice, equal to the limit on input wait",
)
FILL_STEPS = Threshold(
    "time to fill the buffer where the loop's length is unknown",
    100.0,
    "steps",
    "own choice: time in which a hundred steps could have run",
)
SHUFFLE_PART = Threshold(
    "part of the wait that filling explains",
    30.0,
    "% of the wait for the first batch",
    "own choice: below it the wait is start-up, not filling",
)
META = Meta(
    id="slow-shuffle-fill",
    name="Slow shuffle fill",
    title_failed="Training waits while a shuffle buffer fills with costly elements",
    title_passed="The shuffle buffer fills quickly",
    looks_at="How long the first batch was waited for, the buffer's size, and what one element "
    "costs above the shuffle.",
    why="A shuffle hands out nothing until its buffer is full, and it fills anew in each epoch: "
    "buffer size times the time of one element, with nothing trained meanwhile.",
    edit="Shuffle before the costly map (paths, ids or records in place of decoded elements).",
    cost="Elements come in another order. Before a cache, the order would be frozen: keep it "
    "behind.",
    prediction="The whole loop over the loop without the fills, where its length is known. The "
    "ceiling does not bound it, as it speaks of steps after the fill.",
    needs=("loop", "pipeline", "steps"),
    thresholds=(FILL_SHARE, FILL_STEPS, SHUFFLE_PART),
    severity="warn",
    effect_on_results="same up to order or rounding",
)

_COSTLY = ("map", "from_generator", "flat_map", "interleave", "filter")


def check(session: Session) -> list[Finding]:
    """One finding for the shuffle with the longest fill."""
    shuffles = operations(session, "shuffle")
    if not shuffles:
        return [META.finding("not-applicable", "The pipeline has no shuffle.")]
    fill_ms = session.steps.fill_ms if session.steps else None
    if fill_ms is None:
        return [META.finding("inconclusive", "The wait for the first batch was not measured.")]
    op = max(shuffles, key=lambda shuffle: _fill_estimate_ms(session, shuffle) or 0.0)
    return [_finding(session, op, fill_ms)]


def _finding(session: Session, op: Operation, fill_ms: float) -> Finding:
    estimate = _fill_estimate_ms(session, op)
    # The first wait also holds the pipeline's start, which later epochs don't repeat.
    share = _share_of_loop(session, fill_ms if estimate is None else min(fill_ms, estimate))
    evidence: dict[str, Scalar] = {
        "fill_ms": fill_ms,
        "buffer_size": op.buffer_size or op.parameters.get("buffer_size"),
        "estimated_fill_ms": estimate,
        "fill_percent_of_loop": share,
    }
    if not _is_long(session, fill_ms, share):
        return META.finding("pass", "", op=op, evidence=evidence)
    costly = [other for other in upstream(session, op) if _is_costly(other)]
    if estimate is None and costly:
        advice = f"Whether filling {call_name(op)} is what the first batch waited for is not known."
        return META.finding("inconclusive", advice, op=op, evidence=evidence)
    if estimate is None or estimate < fill_ms * SHUFFLE_PART.value / 100.0:
        return META.finding("pass", "", op=op, evidence=evidence)
    if not costly:
        advice = (
            f"Filling {call_name(op)} took {fill_ms / 1000:.1f} s, with nothing costly above it: a "
            "smaller buffer fills sooner and shuffles less."
        )
        return META.finding("informative", advice, op=op, evidence=evidence)
    slowest = max(costly, key=lambda other: delay_ms(session, other) or 0.0)
    return META.finding(
        "fail",
        _advice(op, slowest, fill_ms),
        op=op,
        evidence=evidence,
        prediction=_prediction(share),
        untried="A trial compares steady steps, and the fill comes before them.",
    )


def _is_costly(op: Operation) -> bool:
    return op.kind in _COSTLY and not op.removed_by_tensorflow


def _fill_estimate_ms(session: Session, op: Operation) -> float | None:
    """Buffer size times the delay of one element above the shuffle."""
    buffer = op.buffer_size or op.parameters.get("buffer_size")
    above = upstream(session, op)
    delays = [delay_ms(session, other) for other in above]
    per_step = above[0].elements if above else None
    if not isinstance(buffer, int) or not per_step or all(delay is None for delay in delays):
        return None
    size = min([buffer, *(o.cardinality for o in above[:1] if o.cardinality and o.cardinality > 0)])
    return size * sum(delay or 0.0 for delay in delays) / per_step


def _share_of_loop(session: Session, fill_ms: float) -> float | None:
    loop = session.diagnosed_loop()
    if loop is None or not loop.projected_s:
        return None
    passes = passes_over_data(session)
    fills = passes if passes is not None and passes != math.inf else 1
    return min(95.0, 100.0 * fill_ms * fills / (1000.0 * loop.projected_s))


def _is_long(session: Session, fill_ms: float, share: float | None) -> bool:
    if share is not None:
        return share >= FILL_SHARE.value
    return session.steps is not None and fill_ms >= FILL_STEPS.value * session.steps.mean_ms


def _advice(op: Operation, slowest: Operation, fill_ms: float) -> str:
    if slowest.kind == "from_generator":
        return (
            f"Let the generator of {call_name(slowest)} shuffle indices itself and drop "
            f"{call_name(op)}, which took {fill_ms / 1000:.1f} s to fill."
        )
    return (
        f"Move {call_name(op)} above {call_name(slowest)}: it took {fill_ms / 1000:.1f} s to fill "
        "with finished elements, and fills in a moment with raw ones."
    )


def _prediction(share: float | None) -> Prediction:
    if share is None:
        return Prediction(None, "How long the whole loop would run is not known.")
    return Prediction(round(100.0 / (100.0 - share), 3))
