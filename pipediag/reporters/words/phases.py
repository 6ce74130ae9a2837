"""Consumer alone, pipeline alone, both: three measurements that must fit together.

After DS-Analyzer, which runs a training job on synthetic data, its input pipeline by itself, and
both, and tells from the three what stalls it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.measures.bootstrap import interval, resampled_means
from pipediag.reporters.words.quantities import counted, milliseconds, percent
from pipediag.session.model import Session
from pipediag.session.record import Interval
from pipediag.vocabulary import BASE

TOLERANCE = 0.1
"""The three were measured one after the other, and blocks of one pipeline that lie some seconds
apart differ by up to 5 % each."""
_AGAIN = "Both again, as what the changes were held against"
_NOT_AGREED = "but the breakdown believes what was seen without it"
_TOLERANCE_POINTS = 100 * TOLERANCE


@dataclass(frozen=True)
class Phase:
    """One row: what ran, and how long a batch took."""

    name: str
    ms: float | None
    """Mean per batch."""
    ci95_ms: Interval | None
    basis: str | None = None
    """What it rests on: `40 steps`."""
    missing: str | None = None


def phases(session: Session) -> list[Phase]:
    """The three, those that were not measured with their reason; none without a measured step."""
    if session.steps is None:
        return []
    return [_consumer(session), _pipeline(session), *_both(session)]


def _consumer(session: Session) -> Phase:
    name, alone = "Consumer alone, on one repeated batch", session.differential
    if alone is None:
        return Phase(name, None, None, missing=session.differential_missing)
    return Phase(name, alone.step_ms, alone.ci95_ms, counted(alone.steps, "step"))


def _pipeline(session: Session) -> Phase:
    name, alone = "Pipeline alone, nothing consuming", session.pipeline_alone
    if alone is None:
        reason = session.pipeline_alone_missing or session.trials_missing
        return Phase(name, None, None, missing=reason)
    return Phase(name, alone.step_ms, alone.ci95_ms, counted(alone.blocks, "block"))


def _both(session: Session) -> list[Phase]:
    steps, run = session.steps, session.trials
    if steps is None:
        return []
    bounds = interval(resampled_means(steps.samples_ms)) if steps.samples_ms else None
    basis = counted(steps.count, "step")
    rows = [Phase("Both, as the script runs", steps.mean_ms, bounds, basis)]
    if run is not None and run.base_step_ms is not None and run.consumer == "training":
        blocks = sum(block.arm == BASE for block in run.blocks)
        rows.append(Phase(_AGAIN, run.base_step_ms, None, counted(blocks, "block")))
    return rows


def agreement(session: Session) -> str | None:
    """One sentence: whether the three fit together and with the breakdown; None where one lacks."""
    consumer, pipeline = session.differential, session.pipeline_alone
    if consumer is None or pipeline is None or session.steps is None:
        return None
    return _fit(consumer.step_ms, pipeline.step_ms, session.steps.mean_ms) + _waiting(session)


def _fit(consumer: float, pipeline: float, both: float) -> str:
    longer, total = max(consumer, pipeline), consumer + pipeline
    pace = "the pipeline" if pipeline > consumer else "the consumer"
    if both < (1 - TOLERANCE) * longer:
        return (
            f"Both together take {milliseconds(both)}, less than {pace} alone "
            f"({milliseconds(longer)}): the three do not fit together"
        )
    if both <= (1 + TOLERANCE) * longer:
        return (
            f"Both together take as long as the longer of the two ({milliseconds(longer)}): they "
            f"overlap, and {pace} sets the pace"
        )
    if _near(both, total):
        return (
            f"Both together take as long as one after the other ({milliseconds(total)}): they do "
            "not overlap"
        )
    if both < total:
        return (
            f"Both together take longer than the longer of the two ({milliseconds(longer)}) and "
            f"less than one after the other ({milliseconds(total)}): they overlap in part, or "
            "compete for the CPU"
        )
    return (
        f"Both together take longer than one after the other ({milliseconds(total)}): they hinder "
        "each other, as threads that compete for the CPU or the interpreter lock do"
    )


def _waiting(session: Session) -> str:
    """Held against the breakdown, unless that rests on the same repeated batch."""
    breakdown, consumer, steps = session.breakdown, session.differential, session.steps
    method = session.input_wait.method if session.input_wait else None
    if breakdown is None or consumer is None or steps is None or method == "differential":
        return "."
    share = breakdown.get("input_wait")
    if share is None or steps.mean_ms <= 0:
        return "."
    left = 100 * max(0.0, 1 - consumer.step_ms / steps.mean_ms)
    wait = session.input_wait
    contested = wait is not None and wait.contested_by_percent is not None
    agrees = not contested and abs(left - share.percent) <= _TOLERANCE_POINTS
    link = "and the breakdown agrees" if agrees else _NOT_AGREED
    return (
        f"; the consumer alone leaves {percent(left)} of the step to input, {link} "
        f"({percent(share.percent)})."
    )


def _near(value: float, target: float) -> bool:
    return abs(value - target) <= TOLERANCE * target
