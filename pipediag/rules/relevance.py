"""Whether an operation's cost matters for this run: the test that speed rules share."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.limits import INPUT_BOUND, INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.pipeline import delay_ms, measured_at
from pipediag.facts.run import long_percent, steps_beside_percent
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.steps import Share
from pipediag.vocabulary import FindingStatus, Scalar


@dataclass(frozen=True)
class Weight:
    """`fail` where it matters, otherwise what to say instead."""

    status: FindingStatus
    sentence: str
    evidence: dict[str, Scalar]
    undecided: bool = False
    """Whether measurements leave open if it matters, so that only a trial can say."""

    @property
    def to_try(self) -> FindingStatus:
        """The status of a finding with an edit: what is not known informs, and is tried."""
        return "informative" if self.undecided else self.status

    @property
    def worth_trying(self) -> bool:
        """Whether an edit could gain anything, as far as was measured."""
        return self.status == "fail" or self.undecided


def weigh_input(session: Session) -> Weight:
    """Whether the step waits for input at all. Needs the breakdown."""
    share = _input_wait(session)
    evidence: dict[str, Scalar] = {"input_wait_percent": share.percent, "input_wait_ms": share.ms}
    low, high = share.ci95_percent
    if low >= INPUT_WAIT.value:
        return Weight("fail", "", evidence)
    if high < INPUT_WAIT.value or share.percent < INPUT_WAIT.value:
        seldom = f"The step waits for input only {share.percent:.1f} % of its time"
        if (contested := contested_by_percent(session)) is not None:
            sentence = (
                f"{seldom}, but on a repeated batch it is {contested:.0f} % shorter: whether "
                "changing this would gain anything is not settled."
            )
        else:
            sentence = f"{seldom}, so changing this would gain nothing now."
        return Weight("informative", sentence, evidence, undecided=contested is not None)
    sentence = (
        f"Input wait is {share.percent:.1f} % with an interval of {low:.1f} to {high:.1f} %, which "
        f"straddles {INPUT_WAIT.value:g} %: measure more steps to be sure that it matters."
    )
    return Weight("informative", sentence, evidence, undecided=True)


def contested_by_percent(session: Session) -> float | None:
    """How much shorter a repeated batch makes the step, in percent of it, where a wait is judged
    too short to matter and that says otherwise; None where it does not."""
    wait = session.input_wait
    contested = wait.contested_by_percent if wait is not None else None
    if contested is None or contested < INPUT_WAIT.value:
        return None
    return contested if _input_wait(session).percent < INPUT_WAIT.value else None


def weigh(session: Session, op: Operation, delay: float | None = None) -> Weight:
    """Whether the step waits for input, and this operation is a relevant part of the wait.

    Needs the steps and the breakdown. `delay` (ms per step) stands in for the operation's own,
    which is reckoned with all its calls running at once.
    """
    waiting = weigh_input(session)
    delay = delay_ms(session, op) if delay is None else delay
    if delay is None or session.steps is None:
        return _unmeasured(session, op, waiting)
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
    """Why time saved in the consumer would be waited away, as a sentence, or None."""
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


def _unmeasured(session: Session, op: Operation, waiting: Weight) -> Weight:
    bottleneck = session.pipeline.bottleneck_op_id if session.pipeline else None
    if waiting.status != "fail" or bottleneck == measured_at(session, op).id:
        return waiting
    sentence = "What this operation costs was not measured, so its part in the wait is unknown."
    return Weight("inconclusive", sentence, waiting.evidence, undecided=True)


def _input_wait(session: Session) -> Share:
    none = Share(ms=0.0, percent=0.0, ci95_percent=(0.0, 0.0))
    return (session.breakdown or {}).get("input_wait", none)
