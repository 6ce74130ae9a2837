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
from pipediag.reporters.words.quantities import counted, milliseconds, percent, speedup
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.record import Interval

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
    basis: str | None
    """The measurement, `40 steps`, or why there is none."""


def phases(session: Session) -> list[Phase]:
    """Return the phases, those that were not measured with their reason; none without a step."""
    steps, consumer, pipeline = session.steps, session.differential, session.pipeline_alone
    if steps is None:
        return []
    bounds = interval(resampled_means(steps.samples_ms)) if steps.samples_ms else None
    return [
        Phase(
            "Consumer alone, on one repeated batch",
            consumer.step_ms if consumer else None,
            consumer.ci95_ms if consumer else None,
            counted(consumer.steps, "step") if consumer else session.differential_missing,
        ),
        Phase(
            "Pipeline alone, nothing consuming",
            pipeline.step_ms if pipeline else None,
            pipeline.ci95_ms if pipeline else None,
            counted(pipeline.blocks, "block")
            if pipeline
            else session.pipeline_alone_missing or session.trials_missing,
        ),
        Phase("Both, as the script runs", steps.mean_ms, bounds, counted(steps.count, "step")),
    ]


@dataclass(frozen=True)
class SelfCheck:
    """One pair of figures that should be the same."""

    title: str
    here: str
    there: str
    """Both are empty where one of the two was not measured."""
    off_percent: float | None
    """By how much the second is more."""
    means: str
    """The meaning of a difference, or why there is nothing to compare."""

    @property
    def word(self) -> str:
        """`agree`, `differ`, `not compared`."""
        if self.off_percent is None:
            return "not compared"
        return "differ" if abs(self.off_percent) > 100 * TOLERANCE else "agree"


def self_checks(session: Session) -> list[SelfCheck]:
    """Return the pairs of times; none where no step was measured."""
    steps, trials, ledger = session.steps, session.trials, session.run
    if steps is None:
        return []
    loop = session.diagnosed_loop()
    time = loop.time if loop is not None else None
    base_ms = trials.base_step_ms if trials and trials.consumer == "training" else None
    return [
        _pair(
            "The step and the loop",
            (time.total_s - time.unexplained_s) * 1e3 if time else None,
            time.total_s * 1e3 if time else None,
            "A loop that takes longer has steps or work that no measured step had.",
            loop.time_missing if loop is not None else None,
        ),
        _pair(
            "A step of the baseline and of the trials",
            steps.mean_ms,
            base_ms,
            "If they differ, steps or machine changed in between; the ratio of a trial holds.",
            session.trials_missing,
        ),
        _pair(
            "The ledger with pipediag's own time, and the clock",
            (ledger.total_s + ledger.pipediag_s) * 1e3 if ledger else None,
            session.wall_s * 1e3,
            "What the clock has more is in no part of the ledger, usually the last moments.",
            session.run_missing,
        ),
    ]


def _pair(
    title: str, here_ms: float | None, there_ms: float | None, means: str, missing: str | None
) -> SelfCheck:
    if not here_ms or here_ms < 0 or not there_ms:
        return SelfCheck(title, "", "", None, missing or "One of the two was not measured.")
    off = 100.0 * (there_ms / here_ms - 1.0)
    return SelfCheck(title, milliseconds(here_ms), milliseconds(there_ms), off, means)
