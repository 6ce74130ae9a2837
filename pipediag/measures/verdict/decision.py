"""The verdict: what bounds the step, how sure that is, and why.

Limits: input wait under 5 % of the step is fine and over 20 % is the bottleneck; host overhead
counts from 3 % and weighs from 15 % (XProf's input-pipeline analysis, its thresholds for input,
kernel launch and all others). Where input is not the bottleneck, the largest of compute, transfer
and overhead is; two within 5 points of each other are called balanced, as no single change helps.
A wait between the epochs that outweighs all of that in the loop goes before the step.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipediag.facts.limits import INPUT_BOUND_PERCENT, INPUT_FINE_PERCENT
from pipediag.facts.step import group_percents, uneven
from pipediag.measures.step.differential import FEWEST_STEPS
from pipediag.measures.verdict.case import Case
from pipediag.measures.verdict.confidence import (
    Doubt,
    about_loop_time,
    confidence_of,
    doubts,
)
from pipediag.measures.verdict.culprits import Culprit, input_culprit, python_culprit, shuffle_fill
from pipediag.measures.verdict.first_batches import outweigh_the_steps
from pipediag.measures.verdict.loop_wording import epoch_ends_sentence, first_batch_sentence
from pipediag.measures.verdict.no_loop import no_loop_sentence
from pipediag.measures.verdict.wording import (
    balanced_sentence,
    input_sentence,
    missing_sentence,
    moderate_input,
    other_sentence,
)
from pipediag.session.findings import Verdict
from pipediag.session.record import Interval
from pipediag.session.steps import Share
from pipediag.vocabulary import Bottleneck, Group, StepClass, VerdictSeverity

OVERHEAD_MODERATE_PERCENT = 3.0
OVERHEAD_HIGH_PERCENT = 15.0
BALANCED_POINTS = 5.0
FEWEST_EPOCH_ENDS = 2
"""Own choice: one wait may have been the machine's."""


def decide(case: Case) -> Verdict:
    """The verdict; `inconclusive` without a training loop, with under five steps, or in doubt."""
    if case.loop is None:
        return _inconclusive(no_loop_sentence(case), [])
    if case.steps is None or case.steps.count < FEWEST_STEPS:
        return _inconclusive(_few_steps(case), [])
    if outweigh_the_steps(case):
        return _decide_first_batches(case)
    if case.breakdown is None:
        return _inconclusive(missing_sentence(case.breakdown_missing), doubts(case, None, []))
    return _decide_measured(case, case.breakdown)


def _decide_measured(case: Case, breakdown: Mapping[StepClass, Share]) -> Verdict:
    share = breakdown["input_wait"]
    low, high = share.ci95_percent
    straddled = [
        limit for limit in (INPUT_FINE_PERCENT, INPUT_BOUND_PERCENT) if low < limit <= high
    ]
    if len(straddled) == 2:
        return _too_wide(case, share.ci95_percent, straddled)
    if share.percent >= INPUT_BOUND_PERCENT:
        culprit = input_culprit(case.pipeline, case.loop, case.host)
        return _verdict(
            case,
            "input",
            "high",
            input_sentence(share, culprit, case.ceiling, case.input_wait),
            straddled=straddled,
            culprit=culprit,
        )
    return _decide_consumer(case, breakdown, straddled)


def _decide_first_batches(case: Case) -> Verdict:
    """What weakens the numbers of a step says nothing against a wait that lies between them."""
    time = case.loop.time if case.loop is not None else None
    assert time is not None
    fill = shuffle_fill(case.pipeline)
    culprit = fill.shuffle if fill else input_culprit(case.pipeline, case.loop, case.host)
    reasons = list(about_loop_time(case.loop))
    if time.epoch_ends_seen < FEWEST_EPOCH_ENDS:
        reasons.append(Doubt(epoch_ends_sentence(time)))
    return Verdict(
        bottleneck="input",
        severity="high",
        summary=first_batch_sentence(time, fill or culprit),
        confidence=confidence_of(reasons),
        reasons=_reasons(case, [reason.sentence for reason in reasons]),
        file=culprit.file if culprit else None,
        line=culprit.line if culprit else None,
        op_id=culprit.op_id if culprit else None,
    )


def _decide_consumer(
    case: Case, breakdown: Mapping[StepClass, Share], straddled: list[float]
) -> Verdict:
    groups = group_percents(breakdown)
    (first, most), (second, next_most) = list(groups.items())[:2]
    wait, unknown = breakdown["input_wait"], breakdown["unattributed"].percent
    if unknown > most:
        return _unattributed(case, wait, unknown, straddled)
    moderate = wait.percent >= INPUT_FINE_PERCENT
    also = moderate_input(wait) if moderate else ""
    if most - next_most < BALANCED_POINTS:
        sentence = balanced_sentence(first, most, second, next_most) + also
        severity = _severity("overhead", groups["overhead"], moderate)
        return _verdict(case, "balanced", severity, sentence, straddled=straddled)
    sentence = other_sentence(first, most, breakdown, case.ceiling, case.input_wait) + also
    culprit = python_culprit(breakdown, case.host) if first == "overhead" else None
    severity = _severity(first, most, moderate)
    return _verdict(case, first, severity, sentence, straddled=straddled, culprit=culprit)


def _severity(group: Group, percent: float, input_moderate: bool) -> VerdictSeverity:
    """How much of the step is cost that could go: compute is what the user is there for."""
    if group != "compute" and percent >= OVERHEAD_HIGH_PERCENT:
        return "high"
    overhead = group != "compute" and percent >= OVERHEAD_MODERATE_PERCENT
    return "moderate" if overhead or input_moderate else "ok"


def _verdict(
    case: Case,
    bottleneck: Bottleneck,
    severity: VerdictSeverity,
    summary: str,
    *,
    straddled: list[float],
    culprit: Culprit | None = None,
) -> Verdict:
    reasons = doubts(case, bottleneck, straddled)
    return Verdict(
        bottleneck=bottleneck,
        severity=severity,
        summary=summary,
        confidence=confidence_of(reasons),
        reasons=_reasons(case, [reason.sentence for reason in reasons]),
        file=culprit.file if culprit else None,
        line=culprit.line if culprit else None,
        op_id=culprit.op_id if culprit else None,
    )


def _too_wide(case: Case, interval: Interval, straddled: list[float]) -> Verdict:
    summary = (
        f"Input wait lies somewhere from {interval[0]:.0f} to {interval[1]:.0f} % of the step, so "
        "it may be fine or the bottleneck. Measure longer with --steps."
    )
    return _inconclusive(summary, doubts(case, None, straddled), case)


def _unattributed(case: Case, wait: Share, unknown: float, straddled: list[float]) -> Verdict:
    fine = "Not input-bound" if wait.percent < INPUT_FINE_PERCENT else "Not mainly input-bound"
    summary = (
        f"{fine} (input wait {wait.percent:.0f} % of the step), but what the rest is bound by is "
        f"not known: {unknown:.0f} % of the step could not be attributed."
    )
    return _inconclusive(summary, doubts(case, None, straddled), case)


def _inconclusive(summary: str, why: list[Doubt], case: Case | None = None) -> Verdict:
    sentences = [doubt.sentence for doubt in why]
    return Verdict(
        bottleneck="inconclusive",
        severity="unknown",
        summary=summary,
        confidence="low",
        reasons=_reasons(case, sentences) if case else sentences,
    )


def _reasons(case: Case, sentences: list[str]) -> list[str]:
    steps = case.steps
    if steps is None:
        return sentences
    what = "mean steps over intervals" if case.averaged else "steps"
    measured = (
        f"{steps.count} {what} without a profiler, mean {steps.mean_ms:.4g} ms, median "
        f"{steps.median_ms:.4g} ms (95 % interval {steps.ci95_ms[0]:.4g} to "
        f"{steps.ci95_ms[1]:.4g} ms); {steps.warmup_count} warm-up "
        f"{'intervals' if case.averaged else 'steps'} left out."
    )
    apart = uneven(steps)
    return [measured, *([apart] if apart else []), *sentences]


def _few_steps(case: Case) -> str:
    if case.steps is None:
        return missing_sentence(case.steps_missing)
    return (
        f"Only {case.steps.count} {'intervals' if case.averaged else 'steps'} were seen after the "
        f"warm-up; a verdict needs "
        f"{FEWEST_STEPS}. Let the script train longer, or ask for a shorter --warmup."
    )
