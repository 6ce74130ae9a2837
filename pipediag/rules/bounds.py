"""Upper bounds on a step's speed-up, by Amdahl's law and never beyond the session's ceiling.

Where a measured time has an interval, the bound rests on the end that makes it larger.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pipediag.facts.limits import bound
from pipediag.facts.machine import on_accelerator
from pipediag.facts.pipeline import delay_ms
from pipediag.facts.step import class_ms, most_percent
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import StepClass


def limited(session: Session, finding: Finding, frees: Iterable[StepClass]) -> Finding:
    """Return a failed finding on steps with the bound of the classes it frees, if it has none.

    That is the step over the step without these classes of its time; for input the ceiling too,
    which knows what the profile alone does not.
    """
    if finding.status != "fail" or finding.about_results or session.breakdown is None:
        return finding
    if finding.speedup_at_most is not None or finding.part != "steps":
        return finding
    classes = list(frees)
    at_most = bound(100.0, most_percent(session, {*classes, *_beside(session, classes)}))
    if "input_wait" in classes:
        at_most = max(at_most or 1.0, ceiling(session) or 1.0)
    if at_most is None or at_most <= 1.0:
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

    They work ahead, beside the rest of the step, which still takes as long as one of them.
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
    # tf.data does not count all that is waited for, and the rest belongs to what it counts.
    more = unexplained_factor(session) * (most_ms / wait_ms if wait_ms else 1.0)
    removable_ms = min(saved_ms * more, most_ms)
    if on_cpu and session.host is not None:
        busy_ms = step_ms * session.host.cores_busy / session.host.cores_allowed
        removable_ms = min(removable_ms, step_ms - busy_ms)
    return min(bound(step_ms, removable_ms) or 1.0, free)


def ceiling(session: Session) -> float | None:
    """Return the most that free input buys: the larger of two measurements, at its upper end.

    A pipeline that computes on the CPUs of the step, or holds the GIL, costs more than the waits.
    """
    waits, alone = session.ceiling, session.differential
    if waits is None or waits.speedup_if_input_free is None:
        return None
    by_waits = waits.ci95[1] if waits.ci95 is not None else waits.speedup_if_input_free
    share = alone.input_share_percent if alone is not None else 0.0
    return max(by_waits, 100.0 / (100.0 - share) if share < 100.0 else by_waits)


def unexplained_factor(session: Session) -> float:
    """Return how many times as long the input wait is as all measured delays, at least 1.

    tf.data does not count what it spends on handing single elements on; that belongs to the
    operations in proportion to their delays.
    """
    explained = explained_ms(session)
    return max(1.0, class_ms(session, ["input_wait"]) / explained) if explained else 1.0


def uncounted_wait_ms(session: Session) -> float:
    """Return the input wait of a step that no operation's clock counts, in milliseconds."""
    return max(0.0, class_ms(session, ["input_wait"]) - explained_ms(session))


def explained_ms(session: Session) -> float:
    """Return the delays of a step that operations' clocks count, in milliseconds."""
    ops = session.pipeline.ops if session.pipeline else []
    return sum(delay_ms(session, op) or 0.0 for op in ops if op.fused_into is None)
