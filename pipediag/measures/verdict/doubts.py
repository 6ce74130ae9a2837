"""Doubts that weaken a verdict, and how sure it is after all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipediag.facts.limits import PERTURBED, SLOWED_RATIO, on_other_sides
from pipediag.facts.machine import missed_cores
from pipediag.facts.names import length, place
from pipediag.facts.run import EXPLAINED_PERCENT, loop_time
from pipediag.measures.verdict.sentences import elsewhere
from pipediag.session.model import Host, Session
from pipediag.vocabulary import Bottleneck, Confidence, Contention

ENOUGH_STEPS = 20
"""Own choice: with fewer, the interval of a bootstrap is known to be too narrow. Samples that are
means of many steps each scatter less, so of those the fewest that a verdict needs are enough."""

_BESIDE: dict[Contention, str] = {
    "python": "Python functions of the pipeline use the CPU",
    "cpu": "Input threads use the CPUs",
}


@dataclass(frozen=True)
class Doubt:
    """A sentence for the reasons; weight 0 explains without weakening, 2 weighs like two."""

    sentence: str
    weight: int = 1


def confidence_of(doubts_found: list[Doubt]) -> Confidence:
    """High without a doubt, medium with one, low with more."""
    weight = sum(doubt.weight for doubt in doubts_found)
    if weight == 0:
        return "high"
    return "medium" if weight == 1 else "low"


def doubts(
    session: Session, bottleneck: Bottleneck | None, straddled: Sequence[float]
) -> list[Doubt]:
    """Return all that speaks against relying on the numbers; None: no verdict was reached."""
    limits = [
        Doubt(f"The interval of the input wait includes the limit of {limit:g} %.")
        for limit in straddled
    ]
    machine = "On an idle machine, the script runs faster and the shares may differ."
    return [
        *_about_steps(session),
        *about_loop_time(session),
        *_about_a_cache(session),
        *_about_threads(session),
        *([Doubt(machine)] if other_programs(session.host) is not None else []),
        *limits,
        *_about_input(session, bottleneck),
        *_about_profile(session, bottleneck),
    ]


def _about_steps(session: Session) -> Iterator[Doubt]:
    if session.steps is None:
        return
    if session.steps.count < ENOUGH_STEPS:
        yield Doubt(
            f"Only {session.steps.count} steps were measured; {ENOUGH_STEPS} make the "
            "interval reliable."
        )
    if not session.steps.stable:
        yield Doubt("The step time had not settled when the baseline began.")


def about_loop_time(session: Session) -> Iterator[Doubt]:
    """Yield a doubt where steps explain too little of the loop."""
    time = loop_time(session)
    if time is None:
        return
    # What is inferred of later epochs is no reason to doubt what was seen.
    seen_s = time.total_s if time.ends_seen else time.steps_s + time.slower_s
    percent = 100.0 * time.steps_s / seen_s if seen_s else 100.0
    if percent < EXPLAINED_PERCENT:
        yield Doubt(
            f"Steps account for {percent:.0f} % of the {length(time.total_s)} that the loop takes "
            f"from its first step on (start and compilation not counted); {elsewhere(time)}. "
            "Statements about the step, and gains in the step, apply only to that part of the "
            "loop."
        )


def _about_a_cache(session: Session) -> Iterator[Doubt]:
    filled = cache_words(session)
    if filled is not None:
        yield Doubt(
            f"All measurements are from the epoch that fills {filled}. They apply only to that "
            "epoch, and later epochs may be faster.",
            weight=2,
        )


def cache_words(session: Session) -> str | None:
    """The cache that was being filled while steps were measured, by its place."""
    loop = session.diagnosed_loop()
    op = session.operation(loop.filled_cache_op_id) if loop is not None else None
    return None if op is None else f"the cache{place(op.file, op.line)}"


def _about_threads(session: Session) -> Iterator[Doubt]:
    loop = session.diagnosed_loop()
    beside = next((one for one in session.loops if loop and one.id == loop.beside), None)
    if beside is not None:
        yield Doubt(
            f"Another thread trained at the same time{place(beside.file, beside.line)}: the two "
            "compete for the CPU and the GIL. Only one of them was measured."
        )


def other_programs(host: Host | None) -> str | None:
    """Return the sentence on what other programs took of the CPUs, where it was missed."""
    others = missed_cores(host)
    if host is None or others is None:
        return None
    return f"Meanwhile, other programs used {others:.1f} of the {host.cores_allowed:g} CPUs."


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
            f"{_BESIDE[wait.contention]} during the training steps, which were not measured with "
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
