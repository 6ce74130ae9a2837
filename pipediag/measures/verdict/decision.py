"""The verdict: what bounds the step, the doubts about it, and how sure it is after all of them.

Limits: input wait under 5 % of the step is fine and over 20 % is the bottleneck; host overhead
counts from 3 % and weighs from 15 % (XProf's input-pipeline analysis, its thresholds for input,
kernel launch and all others). Where input is not the bottleneck, the largest of compute, transfer
and overhead is. Two are called balanced where they lie within 5 points of each other, or where
their ranges overlap, as the profiler slows the step that it divides: neither alone limits it.
A wait between the epochs that outweighs all of that in the loop goes before the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from pipediag.facts.limits import (
    INPUT_BOUND,
    INPUT_WAIT,
    PERTURBED,
    SLOWED_RATIO,
    limits_within,
    on_other_sides,
)
from pipediag.facts.machine import missed_cores
from pipediag.facts.names import exact_time, place
from pipediag.facts.run import (
    first_batch_percent,
    steps_beside_percent,
    time_of_epochs,
    where,
)
from pipediag.facts.script import failed_by_itself
from pipediag.facts.step import GROUPS, group_percents, most_of_free_input, uneven
from pipediag.measures.input_wait import BESIDE
from pipediag.measures.steps import FEWEST_STEPS
from pipediag.measures.verdict.sentences import (
    Culprit,
    call_in_each_step,
    costs_most,
    eager_culprit,
    filling_shuffle,
    first_batches_sentence,
    input_culprit,
    input_sentence,
    no_loop_sentence,
    other_sentence,
    python_culprit,
    run_sentence,
)
from pipediag.session.findings import Verdict
from pipediag.session.loops import Share
from pipediag.session.model import Session
from pipediag.vocabulary import (
    Bottleneck,
    Confidence,
    Group,
    RunPartName,
    StepClass,
    VerdictSeverity,
)

OVERHEAD_MODERATE_PERCENT = 3.0
OVERHEAD_HIGH_PERCENT = 15.0
BALANCED_POINTS = 20.0
"""Percent of the step that must lie between two groups for one to be named alone. Own measurement:
on two shared cores a group moves by up to 10 between quiet runs of one script, more than the
interval within a run. By how much the profiler made steps longer moves from 0.8 to 1.6, so that
says nothing about how sure the division is."""
NOT_MEASURED = "the step was not measured."


def decide(session: Session) -> Verdict:
    """Return the verdict on a session's run and on its steps. It is `inconclusive` without a
    training loop, with under five steps, or in doubt."""
    steps = session.steps
    enough = session.diagnosed_loop() is not None and steps and steps.count >= FEWEST_STEPS
    waits = enough and outweigh_the_steps(session)
    verdict = _decide_first_batches(session) if waits else decide_steps(session)
    return _of_the_run(session, verdict, {"steps", "epoch_start"} if waits else {"steps"})


def _of_the_run(session: Session, verdict: Verdict, told: Set[RunPartName]) -> Verdict:
    """Return the verdict in which the run comes first, unless it is of one of the `told` parts."""
    found, run = where(session), session.run
    if found is None or run is None:
        return verdict
    if (failure := failed_by_itself(session)) is not None:
        reasons = [verdict.summary, *verdict.reasons]
        return verdict.but(summary=failure, reasons=reasons)
    of_run: dict[str, object] = {"where": found.part}
    if found.row is not None:
        of_run |= {"where_file": found.row.file, "where_line": found.row.line}
    if found.part not in told:
        of_run |= {
            "summary": run_sentence(run, found, verdict.bottleneck),
            "severity": "high",
            "reasons": [verdict.summary, *verdict.reasons],
        }
    return verdict.but(**of_run)


def outweigh_the_steps(session: Session) -> bool:
    """Return True if first batches take more than any part of the steps, and XProf's limit."""
    waiting, steps = first_batch_percent(session), steps_beside_percent(session)
    if steps is None or waiting < INPUT_BOUND.value:
        return False
    if (shares := session.breakdown) is None:
        return waiting > steps
    beside = (shares[name].percent for name in ("input_wait", "unattributed"))
    largest = max(*beside, *group_percents(shares).values())
    return waiting > steps * largest / 100.0


def decide_steps(session: Session) -> Verdict:
    """Return the verdict on the steps alone, whatever the run spends between and around them."""
    steps, few = session.steps, None
    if session.diagnosed_loop() is None:
        few = no_loop_sentence(session)
    elif steps is None:
        few = f"No verdict: {session.steps_missing or NOT_MEASURED}"
    elif steps.count < FEWEST_STEPS:
        few = (
            f"Only {steps.count} steps were seen after the warm-up; a verdict needs "
            f"{FEWEST_STEPS}. Let the script train longer."
        )
    if few is not None:
        return _verdict(session, "inconclusive", "unknown", few, [])
    if session.breakdown is None:
        why = f"No verdict: {session.breakdown_missing or NOT_MEASURED}"
        return _inconclusive(session, why, [])
    verdict, filled = _decide_measured(session, session.breakdown), cache_words(session)
    if filled is None:
        return verdict
    then = f"This was measured in the epoch that fills {filled}; later epochs read it."
    return verdict.but(summary=f"{verdict.summary} {then}")


def _decide_measured(session: Session, breakdown: Mapping[StepClass, Share]) -> Verdict:
    share = breakdown["input_wait"]
    straddled = limits_within(share.ci95_percent)
    if len(straddled) == 2:
        low, high = share.ci95_percent
        summary = (
            f"Input wait is between {low:.0f} and {high:.0f} % of the step, so it may be fine or "
            "the bottleneck. Measure longer with --steps."
        )
        return _inconclusive(session, summary, straddled)
    most = max(group_percents(breakdown).values())
    outdone = bool(straddled) and most - share.percent >= BALANCED_POINTS
    if share.percent < INPUT_BOUND.value or outdone:
        return _decide_consumer(session, breakdown, straddled)
    culprit = input_culprit(session)
    summary = input_sentence(share, culprit, most_of_free_input(session))
    why = doubts(session, "input", straddled)
    return _verdict(session, "input", "high", summary, why, culprit)


NO_END_SEEN = (
    "No end of an epoch was seen. Each later epoch is assumed to wait for its first batch as long "
    "as the first one did, because its shuffle fills again. That first wait may include work that "
    "happens once."
)


def _decide_first_batches(session: Session) -> Verdict:
    run, time = session.run, time_of_epochs(session)
    assert run is not None
    assert time is not None
    # A shuffle that fills, or else what costs most of the input, where known.
    culprit = filling_shuffle(session) or input_culprit(session)
    if session.environment.worker is not None:
        # A strategy asks all workers whether they have a batch, so the wait may be for a peer.
        culprit = None
    # One wait may have been the machine's.
    one = "1 end of an epoch was seen, with its waits."
    seen_little = time.ends_seen < 2
    reasons = [Doubt(one if time.ends_seen else NO_END_SEEN)] if seen_little else []
    summary = first_batches_sentence(run, time, culprit) + _for_peers(session)
    return _verdict(session, "input", "high", summary, reasons, culprit)


def _decide_consumer(
    session: Session, breakdown: Mapping[StepClass, Share], straddled: list[float]
) -> Verdict:
    groups = group_percents(breakdown)
    (first, most), (second, next_most) = list(groups.items())[:2]
    wait, unknown = breakdown["input_wait"], breakdown["unattributed"].percent
    moderate, also = wait.percent >= INPUT_WAIT.value, ""
    if unknown > most:
        summary = (
            f"Not {'mainly ' if moderate else ''}input-bound (input wait {wait.percent:.0f} % of "
            f"the step), but it is not known what limits the rest: {unknown:.0f} % of the step "
            "could not be attributed."
        )
        return _inconclusive(session, summary, straddled)
    if moderate:
        also = f" Moderately input-bound as well: input wait is {wait.percent:.0f} % of the step."
    if most - next_most < BALANCED_POINTS:
        # In one order always.
        one, other = (group for group in GROUPS if group in (first, second))
        sentence = (
            f"{one.capitalize()} takes {groups[one]:.0f} % of each step, and {other} "
            f"{groups[other]:.0f} %: neither alone limits it.{also}"
        )
        severity = _severity("overhead", groups["overhead"], moderate)
        why = doubts(session, "balanced", straddled)
        return _verdict(session, "balanced", severity, sentence, why)
    # Where a repeated batch contradicts the gap times, only the reasons mention it.
    told = session.input_wait
    shared = told is not None and told.contention and told.contested_by_percent is None
    at_most = most_of_free_input(session) if shared else None
    sentence = other_sentence(first, most, breakdown, at_most) + also
    # Keras on JAX waits for its collectives in Python.
    by_python = first == "overhead" and session.environment.keras_backend == "jax"
    if first == "transfer" or by_python:
        sentence += _for_peers(session)
    culprit = None
    if first == "overhead":
        eager = eager_culprit(session.diagnosed_loop())
        culprit = eager or python_culprit(breakdown, session.host)
    call = call_in_each_step(session.diagnosed_loop())
    if call is not None:
        at = place(call.file, call.line)
        sentence += f" `{call.what}`{at} takes {call.percent:.0f} % of each step."
        culprit = Culprit(f"`{call.what}`", call.file, call.line)
    severity = _severity(first, most, moderate)
    return _verdict(session, first, severity, sentence, doubts(session, first, straddled), culprit)


def _for_peers(session: Session) -> str:
    """Return what else the wait of a worker of a job may be; nothing for one process."""
    if session.environment.worker is None:
        return ""
    return (
        " That may be a wait for slower workers: `pipediag show` with the reports of all "
        "workers names them."
    )


def _severity(group: Group, percent: float, input_moderate: bool) -> VerdictSeverity:
    """Return how much of the step could go; compute is what the user is there for."""
    if group != "compute" and percent >= OVERHEAD_HIGH_PERCENT:
        return "high"
    overhead = group != "compute" and percent >= OVERHEAD_MODERATE_PERCENT
    return "moderate" if overhead or input_moderate else "ok"


def _verdict(
    session: Session,
    bottleneck: Bottleneck,
    severity: VerdictSeverity,
    summary: str,
    why: list[Doubt],
    culprit: Culprit | None = None,
) -> Verdict:
    weight = sum(doubt.weight for doubt in why)
    confidence: Confidence = "high" if weight == 0 else "medium" if weight == 1 else "low"
    return Verdict(
        bottleneck=bottleneck,
        severity=severity,
        summary=summary,
        confidence=confidence if bottleneck != "inconclusive" else "low",
        reasons=_reasons(session, [doubt.sentence for doubt in why]),
        file=culprit.file if culprit else None,
        line=culprit.line if culprit else None,
        op_id=culprit.op_id if culprit else None,
    )


def _inconclusive(session: Session, summary: str, straddled: Sequence[float]) -> Verdict:
    why = doubts(session, None, straddled)
    return _verdict(session, "inconclusive", "unknown", summary, why)


def _reasons(session: Session, sentences: list[str]) -> list[str]:
    steps = session.steps
    if steps is None:
        return sentences
    measured = (
        f"{steps.count} steps without a profiler, after {steps.warmup_count} of warm-up: mean "
        f"{_digits(steps.mean_ms)} ms, median {_digits(steps.median_ms)} ms (95 % interval "
        f"{_digits(steps.ci95_ms[0])} to {_digits(steps.ci95_ms[1])} ms)."
    )
    apart = uneven(steps)
    return [measured, *([apart] if apart else []), *sentences]


def _digits(ms: float) -> str:
    """Four of them, or all before the point where there are more."""
    return f"{ms:.4g}" if ms < 9999.5 else f"{ms:,.0f}"


NOTHING_TRAINED = (
    "Nothing was trained: whether a training waits for this pipeline depends on how long its step "
    "takes."
)


def decide_input_alone(session: Session) -> Verdict:
    """Return the verdict in the words of a pipeline by itself: `input` by construction, whatever
    its waits are, unless too little was measured."""
    verdict, steps = session.verdict, session.steps
    if steps is None or steps.count < FEWEST_STEPS:
        return verdict
    text = f"The pipeline alone takes {exact_time(steps.mean_ms)} per batch"
    if steps.examples_per_s is not None:
        text += f", {steps.examples_per_s:,.0f} examples per second"
    culprit = input_culprit(session)
    if culprit is not None:
        text += f"; {costs_most(culprit)}"
    return verdict.but(
        bottleneck="input",
        severity="unknown",
        summary=f"{text}.",
        reasons=[*verdict.reasons[:1], NOTHING_TRAINED],
        where=None,
        where_file=None,
        where_line=None,
    )


ENOUGH_STEPS = 20
"""Own choice: with fewer, the interval of a bootstrap is known to be too narrow. Samples that are
means of many steps each scatter less, so of those the fewest that a verdict needs are enough."""


@dataclass(frozen=True)
class Doubt:
    """A sentence for the reasons; weight 0 explains without weakening, 2 weighs like two."""

    sentence: str
    weight: int = 1


def doubts(
    session: Session, bottleneck: Bottleneck | None, straddled: Sequence[float]
) -> list[Doubt]:
    """Return all that speaks against relying on the numbers; None: no verdict was reached."""
    limits = [
        Doubt(f"The interval of the input wait includes the limit of {limit:g} %.")
        for limit in straddled
    ]
    return [
        *_about_the_measurement(session),
        *limits,
        *_about_input(session, bottleneck),
        *_about_profile(session, bottleneck),
    ]


def _about_the_measurement(session: Session) -> Iterator[Doubt]:
    steps, loop, filled = session.steps, session.diagnosed_loop(), cache_words(session)
    if steps is not None and steps.count < ENOUGH_STEPS:
        yield Doubt(
            f"Only {steps.count} steps were measured; {ENOUGH_STEPS} make the interval reliable."
        )
    if steps is not None and not steps.stable:
        yield Doubt("The step time had not settled when the baseline began.")
    if filled is not None:
        yield Doubt(
            f"All measurements are from the epoch that fills {filled}. They apply only to that "
            "epoch, and later epochs may be faster.",
            weight=2,
        )
    beside = next((one for one in session.loops if loop and one.id == loop.beside), None)
    if beside is not None:
        yield Doubt(
            f"Another thread trained at the same time{place(beside.file, beside.line)}: the two "
            "compete for the CPU and the GIL. Only one of them was measured."
        )
    if (others := missed_cores(session.host)) is not None:
        yield Doubt(
            f"Meanwhile, other programs used {others:.1f} of the CPUs: on an idle machine, the "
            "script runs faster and the shares may differ."
        )


def cache_words(session: Session) -> str | None:
    """Return the cache that was being filled while steps were measured, by its place."""
    loop = session.diagnosed_loop()
    op = session.operation(loop.filled_cache_op_id) if loop is not None else None
    return None if op is None else f"the cache{place(op.file, op.line)}"


def _about_input(session: Session, bottleneck: Bottleneck | None) -> Iterator[Doubt]:
    wait = session.input_wait
    if wait is None:
        return
    if wait.disagreement is not None:
        # Another method may put the input wait on another side of XProf's limits.
        believed, other = wait.native_percent, wait.contested_by_percent
        apart = believed is not None and other is not None and on_other_sides(believed, other)
        yield Doubt(wait.disagreement, weight=1 if wait.unsettled or apart else 0)
    if wait.method == "trace":
        first = "tf.data's gap times were not available, so the input wait comes from the profile"
        ratio = session.perturbation.ratio if session.perturbation is not None else None
        if ratio is not None and ratio < SLOWED_RATIO:
            yield Doubt(f"{first}; profiled steps took {ratio:.2f} times as long as other steps.")
        else:
            yield Doubt(f"{first}, and the profiler slows steps down.", weight=2)
    if wait.method == "native" and wait.contention is not None and session.differential is None:
        yield Doubt(
            f"{BESIDE[wait.contention]} during the training steps, which were not measured with "
            "a repeated batch: input may cost more than it seems.",
            weight=0 if wait.contention == "cpu" and bottleneck == "input" else 1,
        )


def _about_profile(session: Session, bottleneck: Bottleneck | None) -> Iterator[Doubt]:
    perturbation, weight = session.perturbation, 0 if bottleneck == "input" else 1
    if perturbation is None:
        return
    if perturbation.missing is not None:
        yield Doubt(f"{perturbation.missing} Consumer time is not attributed.", weight)
    elif perturbation.ratio is not None and perturbation.ratio >= PERTURBED.value:
        yield Doubt(
            f"The profiler made steps {perturbation.ratio:.1f} times as long; consumer time is "
            "divided by the profile's proportions.",
            weight,
        )
