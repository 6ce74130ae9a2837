"""How much a cause matters: to the steps of a run, or in its ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipediag.facts.limits import (
    INPUT_BOUND,
    INPUT_FINE_PERCENT,
    INPUT_WAIT,
    OPERATION_SHARE,
    Threshold,
    bound,
)
from pipediag.facts.pipeline import delay_ms, measured_at
from pipediag.facts.run import long_percent, steps_beside_percent, whole_in_words
from pipediag.facts.run_gain import gain_at_most
from pipediag.session.ledger import Run, RunGain, RunPart
from pipediag.session.loops import Share
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import FindingStatus, Scalar


@dataclass(frozen=True)
class Weight:
    """How much something matters: `fail` where it does, otherwise what to say instead."""

    status: FindingStatus
    sentence: str
    evidence: dict[str, Scalar]
    undecided: bool = False
    """True where measurements leave open if it matters, so that only a trial can say."""
    for_run: RunGain | None = None
    """The most that the run gains, where it was weighed in the ledger."""
    speedup_at_most: float | None = None
    """The most that its own rows of the ledger gain."""

    @property
    def to_try(self) -> FindingStatus:
        """The status of a finding with an edit: what is not known informs, and is tried."""
        return "informative" if self.undecided else self.status

    @property
    def worth_trying(self) -> bool:
        """True where an edit could gain something, as far as was measured."""
        return self.status == "fail" or self.undecided

    def before(self, advice: str) -> str:
        """Return the advice behind what stands against it; nothing where the rule passes."""
        return "" if self.status == "pass" else f"{self.sentence} {advice}".strip()


def weigh_input(session: Session) -> Weight:
    """Return how much the step waits for input. Needs the breakdown."""
    share = _input_wait(session)
    evidence: dict[str, Scalar] = {"input_wait_percent": share.percent, "input_wait_ms": share.ms}
    low, high = share.ci95_percent
    if low >= INPUT_WAIT.value:
        return Weight("fail", "", evidence)
    if high < INPUT_WAIT.value or share.percent < INPUT_WAIT.value:
        seldom = f"The step waits for input only {share.percent:.1f} % of its time"
        contested = contested_by_percent(session)
        if contested is None:
            sentence = f"{seldom}, so changing this would gain nothing now."
            return Weight("informative", sentence, evidence)
        sentence = (
            f"{seldom}, but on a repeated batch it is {contested:.0f} % shorter: whether changing "
            "this would gain anything is open."
        )
        return Weight("informative", sentence, evidence, undecided=True)
    sentence = (
        f"Input wait is {share.percent:.1f} % with an interval of {low:.1f} to {high:.1f} %, which "
        f"straddles {INPUT_WAIT.value:g} %: measure more steps to be sure that it matters."
    )
    return Weight("informative", sentence, evidence, undecided=True)


def contested_by_percent(session: Session) -> float | None:
    """Return how much shorter a repeated batch makes the step, in percent of it.

    None unless that says that a wait matters which was measured as too short to matter.
    """
    wait = session.input_wait
    contested = wait.contested_by_percent if wait is not None else None
    if contested is None or contested < INPUT_WAIT.value:
        return None
    return contested if _input_wait(session).percent < INPUT_WAIT.value else None


def weigh(session: Session, op: Operation, delay: float | None = None) -> Weight:
    """Return how much of the input wait is this operation's. Needs the steps and the breakdown.

    `delay` (ms per step) replaces the operation's own, for which all its calls run at once.
    """
    waiting = weigh_input(session)
    delay = delay_ms(session, op) if delay is None else delay
    if delay is None or session.steps is None:
        bottleneck = session.pipeline.bottleneck_op_id if session.pipeline else None
        if waiting.status != "fail" or bottleneck == measured_at(session, op).id:
            return waiting
        unknown = "What this operation costs was not measured, so its part in the wait is unknown."
        return Weight("inconclusive", unknown, waiting.evidence, undecided=True)
    percent = 100.0 * delay / session.steps.mean_ms
    evidence = {**waiting.evidence, "delay_ms_per_step": delay, "delay_percent_of_step": percent}
    if waiting.status == "fail" and percent < OPERATION_SHARE.value:
        sentence = (
            f"It takes only {percent:.1f} % of the step: the input wait comes from elsewhere."
        )
        return Weight("informative", sentence, evidence)
    undecided = waiting.undecided and percent >= OPERATION_SHARE.value
    return Weight(waiting.status, waiting.sentence, evidence, undecided=undecided)


def input_first(session: Session) -> str | None:
    """Return why time saved in the consumer would be waited away, as a sentence, or None."""
    between = long_percent(session) or 0.0
    if between >= INPUT_BOUND.value and between > (steps_beside_percent(session) or 0.0):
        return (
            f"The loop spends {between:.0f} % of its time waiting for the first batch of each "
            "epoch, more than in its steps: deal with that first."
        )
    share = _input_wait(session)
    if share.ci95_percent[0] < INPUT_BOUND.value:
        return None
    return (
        f"The step waits for input {share.percent:.0f} % of its time, and would wait longer for "
        "what is saved elsewhere: deal with the input first."
    )


def _input_wait(session: Session) -> Share:
    none = Share(ms=0.0, percent=0.0, ci95_percent=(0.0, 0.0))
    return (session.breakdown or {}).get("input_wait", none)


RELEVANT = Threshold(
    "the most that it saves, to fail", 10.0, "% of the run", "own choice: few change it for less"
)
NOTABLE = Threshold(
    "the most that it saves, to inform",
    INPUT_FINE_PERCENT,
    "% of the run",
    "own choice, as for input",
)
SHORT = Threshold(
    "its time in all, to fail", 2.0, "s", "own choice: a script of seconds is a first try"
)
THRESHOLDS = (RELEVANT, NOTABLE, SHORT)


def weigh_rows(run: Run, rows: Iterable[RunPart], saved_s: float) -> Weight:
    """Return how much rows of the ledger matter, of which the advice could save so many seconds."""
    taken_s = sum(row.seconds for row in rows)
    whole_s = max(run.whole_s, taken_s, 1e-9)
    saved_s = min(saved_s, taken_s)
    percent = 100.0 * saved_s / whole_s
    status: FindingStatus = "fail"
    sentence = ""
    if percent < NOTABLE.value:
        status = "pass"
    elif percent < RELEVANT.value:
        status = "informative"
        sentence = f"Changing this could save at most {percent:.0f} % of {whole_in_words(run)}."
    elif run.scope == "run" and taken_s < SHORT.value:
        status = "informative"
        sentence = f"It takes {taken_s:.1f} s in all: it matters only in longer runs."
    return Weight(
        status,
        sentence,
        {
            "taken_s": taken_s,
            "taken_percent_of_run": 100.0 * taken_s / whole_s,
            "savable_percent_of_run": percent,
        },
        for_run=gain_at_most(run, saved_s),
        speedup_at_most=bound(taken_s, saved_s),
    )
