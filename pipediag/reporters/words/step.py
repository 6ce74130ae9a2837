"""The step in words: its time, its upper bound, and measurements that must agree with it.

The mean leads, as it is what the breakdown adds up to; the median stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.names import length
from pipediag.facts.step import most_of_free_input
from pipediag.measures.bootstrap import interval, resampled_means
from pipediag.measures.verdict.sentences import elsewhere
from pipediag.reporters.words.labels import STEP_CLASS, in_sentence
from pipediag.reporters.words.quantities import counted, milliseconds, percent, seconds, speedup
from pipediag.session.loops import Loop, Steps
from pipediag.session.model import Session
from pipediag.session.record import Interval
from pipediag.vocabulary import BASE

TOLERANCE = 0.1
"""Two measurements agree up to here: they were made one after the other, and blocks of one pipeline
that lie some seconds apart differ by up to 5 % each."""


def free_input(session: Session) -> str | None:
    """Return `at most 3.1x; then device compute limits`; None where no bound is known."""
    most = most_of_free_input(session)
    if most is None:
        return None
    behind = session.ceiling.next_bottleneck if session.ceiling is not None else None
    then = f"; then {in_sentence(STEP_CLASS[behind])} limits" if behind else ""
    return f"at most {speedup(most)}{then}"


def loop_time(loop: Loop | None) -> str | None:
    """Return where the loop's time goes, as one sentence; None where that is not known."""
    time = loop.time if loop is not None else None
    if time is None or not time.total_s:
        return None
    steps = percent(100.0 * time.steps_s / time.total_s)
    rest = elsewhere(time)
    return (
        f"The loop took {length(time.total_s)} from its first step on: {steps} in steps"
        f"{'; ' + rest if rest else ''}."
    )


@dataclass(frozen=True)
class Phase:
    """A way in which the script's parts ran, and how long a batch took.

    Consumer alone, pipeline alone and both must fit together. DS-Analyzer runs a training job in
    these three ways and tells from them what stalls it.
    """

    name: str
    ms: float | None
    """Mean per batch."""
    ci95_ms: Interval | None
    basis: str | None = None
    """The measurement: `40 steps`."""
    missing: str | None = None


def phases(session: Session) -> list[Phase]:
    """Return the phases, those that were not measured with their reason; none without a step."""
    steps, run = session.steps, session.trials
    if steps is None:
        return []
    consumer, pipeline = session.differential, session.pipeline_alone
    names = "Consumer alone, on one repeated batch", "Pipeline alone, nothing consuming"
    rows = [
        Phase(names[0], consumer.step_ms, consumer.ci95_ms, counted(consumer.steps, "step"))
        if consumer is not None
        else Phase(names[0], None, None, missing=session.differential_missing),
        Phase(names[1], pipeline.step_ms, pipeline.ci95_ms, counted(pipeline.blocks, "block"))
        if pipeline is not None
        else Phase(
            names[1], None, None, missing=session.pipeline_alone_missing or session.trials_missing
        ),
    ]
    bounds = interval(resampled_means(steps.samples_ms)) if steps.samples_ms else None
    basis = counted(steps.count, "step")
    rows.append(Phase("Both, as the script runs", steps.mean_ms, bounds, basis))
    if run is not None and run.base_step_ms is not None and run.consumer == "training":
        basis = counted(sum(block.arm == BASE for block in run.blocks), "block")
        rows.append(Phase("Both again, as the base of trials", run.base_step_ms, None, basis))
    return rows


@dataclass(frozen=True)
class SelfCheck:
    """One pair of figures that should be the same."""

    title: str
    here: str
    """`19.0 s: steps times their mean, waits and epochs' ends`; empty where it was not measured."""
    there: str
    off_percent: float | None
    means: str
    """The meaning of a difference, or why there is nothing to compare."""

    @property
    def off(self) -> str:
        """`+4.1 %`: by how much the second is more."""
        if self.off_percent is None:
            return percent(None)
        return f"{'+' if round(self.off_percent, 1) > 0 else ''}{percent(self.off_percent)}"

    @property
    def word(self) -> str:
        """`agree`, `differ`, `not compared`."""
        if self.off_percent is None:
            return "not compared"
        return "differ" if abs(self.off_percent) > 100 * TOLERANCE else "agree"


def self_checks(session: Session) -> list[SelfCheck]:
    """Return the pairs; none where no step was measured.

    The step and the loop, the trials' base and the baseline, the ledger and the clock.
    """
    if session.steps is None:
        return []
    return [
        _step_and_loop(session.diagnosed_loop()),
        _base_and_baseline(session, session.steps),
        _ledger_and_clock(session),
    ]


def _step_and_loop(loop: Loop | None) -> SelfCheck:
    title = "The step and the loop"
    time = loop.time if loop is not None else None
    if time is None or not time.total_s:
        return _not_compared(title, loop.time_missing if loop is not None else None)
    explained = time.total_s - time.unexplained_s
    return SelfCheck(
        title,
        f"{seconds(explained)} by the steps' mean, waits and epochs' ends",
        f"{seconds(time.total_s)} in the loop",
        _off(explained, time.total_s),
        "A loop that takes longer has steps or work that no measured step had.",
    )


def _base_and_baseline(session: Session, steps: Steps) -> SelfCheck:
    title = "The steps of the trials and of the baseline"
    run = session.trials
    if run is None:
        return _not_compared(title, session.trials_missing)
    if run.base_step_ms is None or run.consumer != "training":
        return _not_compared(title, "The trials measured no such step.")
    return SelfCheck(
        title,
        f"{milliseconds(steps.mean_ms)} a step in the baseline",
        f"{milliseconds(run.base_step_ms)} a step in the trials",
        _off(steps.mean_ms, run.base_step_ms),
        "If they differ, steps or machine changed in between; the ratio of a trial holds.",
    )


def _ledger_and_clock(session: Session) -> SelfCheck:
    title = "The ledger and the clock"
    run = session.run
    if run is None or session.wall_s <= 0:
        return _not_compared(title, session.run_missing)
    known = run.total_s + run.pipediag_s
    return SelfCheck(
        title,
        f"{seconds(known)} in the ledger and in pipediag itself",
        f"{seconds(session.wall_s)} from the script's start to its end",
        _off(known, session.wall_s),
        "What the clock has more is in no part of the ledger, usually the last moments.",
    )


def _not_compared(title: str, reason: str | None) -> SelfCheck:
    return SelfCheck(title, "", "", None, reason or "One of the two was not measured.")


def _off(first: float, second: float) -> float | None:
    return 100.0 * (second / first - 1.0) if first > 0 else None
