"""Weights of causes in the steps or the ledger, and upper bounds on the gain of ending them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from pipediag.facts.limits import INPUT_BOUND, INPUT_WAIT, OPERATION_SHARE, Threshold, bound
from pipediag.facts.machine import on_accelerator
from pipediag.facts.pipeline import (
    delay_ms,
    filled_shuffles,
    measured_at,
    reaches_the_loop_uncached,
)
from pipediag.facts.run import (
    first_waits,
    holds_all,
    long_percent,
    steps_beside_percent,
    whole_in_words,
)
from pipediag.facts.run_gain import gain_at_most
from pipediag.facts.step import ceiling, class_ms, most_percent, percent_of_step
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run, RunGain, RunPart
from pipediag.session.loops import Share
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import FindingStatus, Scalar, StepClass


@dataclass(frozen=True)
class Weight:
    """Weight of a cause: `fail` where it matters, otherwise what to say instead."""

    status: FindingStatus
    sentence: str
    evidence: dict[str, Scalar]
    for_run: RunGain | None = None
    """The most that the run gains, where it was weighed in the ledger."""
    speedup_at_most: float | None = None
    """The most that its own rows of the ledger gain."""

    @property
    def to_try(self) -> FindingStatus:
        """The status of a finding with an edit: what is not known informs, and is tried."""
        return "informative" if self.status == "inconclusive" else self.status

    @property
    def worth_trying(self) -> bool:
        """True where an edit could gain something, as far as was measured."""
        return self.status != "pass"

    def before(self, advice: str) -> str:
        """Return the advice after what stands against it; nothing where the rule passes."""
        return "" if self.status == "pass" else f"{self.sentence} {advice}".strip()


def weigh_input(session: Session) -> Weight:
    """Return how much the step waits for input; it informs where only a trial can say if that
    matters. Needs the breakdown."""
    share, limit = _input_wait(session), INPUT_WAIT.value
    evidence: dict[str, Scalar] = {
        "input_wait_percent_of_step": share.percent,
        "input_wait_ms_per_step": share.ms,
    }
    low, high = share.ci95_percent
    if low >= limit:
        return Weight("fail", "", evidence)
    wait, alone = session.input_wait, session.differential
    contested = (wait.contested_by_percent if wait is not None else None) or 0.0
    # A repeated batch may make the step shorter by more than was measured as a wait, also where the
    # pipeline takes CPU time from the step.
    if wait is not None and wait.contention == "cpu" and alone is not None:
        contested = max(contested, alone.input_share_percent)
    if share.percent < limit and contested < limit:
        return Weight("pass", "", evidence)
    sentence = (
        f"The step waits for input {share.percent:.1f} % of the time ({low:.1f} to {high:.1f} %): "
        "changing this may gain nothing."
    )
    return Weight("informative", sentence, evidence)


def weigh(session: Session, op: Operation, delay: float | None = None) -> Weight:
    """Return how much of the input wait is this operation's. Needs the steps and the breakdown.

    `delay` (ms per step) replaces the operation's own, for which all its calls run at once.
    """
    waiting = weigh_input(session)
    delay = delay_ms(session, op) if delay is None else delay
    percent = percent_of_step(session, delay)
    if percent is None:
        bottleneck = session.pipeline.bottleneck_op_id if session.pipeline else None
        if waiting.status != "fail" or bottleneck == measured_at(session, op).id:
            return waiting
        unknown = (
            "The cost of this operation was not measured, so its part in the wait is not known."
        )
        return Weight("inconclusive", unknown, waiting.evidence)
    evidence = {**waiting.evidence, "delay_ms_per_step": delay, "delay_percent_of_step": percent}
    if percent < OPERATION_SHARE.value:
        # The wait, if there is any, comes from elsewhere.
        return Weight("pass", "", evidence)
    return replace(waiting, evidence=evidence)


def matters(session: Session, *ops: Operation) -> bool:
    """Return True if these operations together delay the step by a part that matters."""
    delay = sum(delay_ms(session, one) or 0.0 for one in ops)
    return (percent_of_step(session, delay) or 0.0) >= OPERATION_SHARE.value


def input_first(session: Session) -> str | None:
    """Return why time saved in the consumer would be waited away, as a sentence, or None."""
    between = long_percent(session) or 0.0
    if between >= INPUT_BOUND.value and between > (steps_beside_percent(session) or 0.0):
        return (
            f"The loop spends {between:.0f} % of its time waiting for the first batch of each "
            "epoch, more than in its steps. Fix that first."
        )
    share = _input_wait(session)
    if share.ci95_percent[0] < INPUT_BOUND.value:
        return None
    return (
        f"The step waits for input {share.percent:.0f} % of the time, and time saved elsewhere "
        "would only lengthen that wait. Fix the input first."
    )


def _input_wait(session: Session) -> Share:
    none = Share(ms=0.0, percent=0.0, ci95_percent=(0.0, 0.0))
    return (session.breakdown or {}).get("input_wait", none)


RELEVANT = Threshold("possible saving, to fail", 10.0, "% of the run", "own choice: worth a change")
NOTABLE = Threshold("possible saving, to inform", 5.0, "% of the run", "own choice, as input wait")
SHORT = Threshold("total time, to fail", 2.0, "s", "own choice: in a shorter run it matters little")
THRESHOLDS = (RELEVANT, NOTABLE, SHORT)
OFTEN = Threshold("number of times", 3.0, "times", "own choice: twice costs little")
EVERY = 5
"""Evaluations or ends of epochs of which one is kept, in what is said of fewer. Own choice."""


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
        sentence = f"It takes {taken_s:.1f} s in total, which matters only in longer runs."
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


def weigh_first_batches(session: Session, op: Operation, left: float) -> Weight | None:
    """Return how much an operation matters whose work is over before an epoch's first batch comes,
    of which that part would be left.

    None for one that the steps may wait for, that later epochs don't run, or that shares the work
    of filling the shuffle; and where the wait matters little.
    """
    run, percent = session.run, long_percent(session)
    if run is None or percent is None or not reaches_the_loop_uncached(session, op):
        return None
    filled = [one for one in filled_shuffles(session) if holds_all(session, one[0])]
    if not any([each.id for each in made] == [op.id] for _, made in filled):
        return None
    rows = first_waits(session)
    weight = weigh_rows(run, rows, (1.0 - left) * sum(row.seconds for row in rows))
    if weight.status == "pass":
        return None
    evidence = {**weight.evidence, "first_batches_percent_of_loop": percent}
    return replace(weight, evidence=evidence)


# Upper bounds, by Amdahl's law and never beyond the session's ceiling. Where a measured time has an
# interval, the bound rests on the end that makes it larger.


def limited(session: Session, finding: Finding, frees: Iterable[StepClass]) -> Finding:
    """Return a failed finding on steps with the bound of the classes it frees, if it has none.

    That is the step over the step without these classes of its time; for input the ceiling too,
    which knows what the profile alone does not.
    """
    if finding.status != "fail" or finding.about_results or session.breakdown is None:
        return finding
    classes = list(frees)
    at_most = bound(100.0, most_percent(session, {*classes, *_beside(session, classes)})) or 1.0
    if "input_wait" in classes:
        at_most = max(at_most, ceiling(session) or 1.0)
    if finding.speedup_at_most is not None or finding.part != "steps" or at_most <= 1.0:
        return finding
    return finding.model_copy(update={"speedup_at_most": round(at_most, 3)})


def at_most_without(session: Session, compute_percent: float) -> float | None:
    """Return the bound without so much compute, in percent of the step; None for nothing."""
    if compute_percent <= 0:
        return None
    beside = most_percent(session, _beside(session, ["device_compute"]))
    return bound(100.0, compute_percent + beside)


def _beside(session: Session, freed: Collection[StepClass]) -> list[StepClass]:
    """Return what grows shorter with the compute where the same CPUs do both.

    Dispatch is then also the time in which operations wait for a core, and input whose threads
    compute on these cores comes sooner.
    """
    if "device_compute" not in freed or on_accelerator(session.environment.devices):
        return []
    wait = session.input_wait
    contended = wait is not None and wait.contention == "cpu"
    return ["dispatch", "input_wait"] if contended else ["dispatch"]


def parallel(session: Session, op: Operation, calls: float, *, on_cpu: bool) -> float | None:
    """Return the bound for an operation with `calls` in flight instead of one.

    They work ahead during the rest of the step, which still takes as long as one of them.
    """
    delay = delay_ms(session, op)
    if delay is None or calls <= 1 or session.steps is None:
        return None
    saved_ms = min(delay, session.steps.mean_ms - delay / calls)
    return less_input(session, saved_ms, on_cpu=on_cpu)


def less_input(session: Session, saved_ms: float, *, on_cpu: bool) -> float | None:
    """Return the bound where the input takes `saved_ms` less per step.

    `on_cpu`: the work stays and is only spread over more CPUs.
    """
    free = ceiling(session)
    if session.steps is None or session.breakdown is None or free is None:
        return None
    step_ms, wait_ms = session.steps.mean_ms, class_ms(session, ["input_wait"])
    if saved_ms >= wait_ms and not on_cpu:
        return free
    most_ms = step_ms * most_percent(session, ["input_wait"]) / 100.0
    counted_ms = _counted_ms(session)
    # tf.data does not count what it spends on handing single elements on; that belongs to what it
    # counts, in proportion to the delays.
    more = max(1.0, wait_ms / counted_ms) if counted_ms else 1.0
    more *= most_ms / wait_ms if wait_ms else 1.0
    removable_ms = min(saved_ms * more, most_ms)
    if on_cpu and session.host is not None:
        busy_ms = step_ms * session.host.cores_busy / session.host.cores_allowed
        removable_ms = min(removable_ms, step_ms - busy_ms)
    return min(bound(step_ms, removable_ms) or 1.0, free)


def uncounted_wait_ms(session: Session) -> float:
    """Return the input wait of a step that no operation's clock counts, in milliseconds."""
    return max(0.0, class_ms(session, ["input_wait"]) - _counted_ms(session))


def _counted_ms(session: Session) -> float:
    """Return the delays of a step that operations' clocks count, in milliseconds."""
    return sum(delay_ms(session, op) or 0.0 for op in session.ops if op.fused_into is None)
