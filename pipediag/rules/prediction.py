"""Predicted speed-ups, from the session's own numbers and never beyond its ceiling."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pipediag.facts.free_input import on_a_repeated_batch
from pipediag.facts.machine import on_accelerator
from pipediag.facts.pipeline import delay_ms
from pipediag.facts.step import class_ms, class_percent
from pipediag.forecast import forecast, likely_range
from pipediag.rules.rule import Prediction
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import StepClass

FORECAST = (
    "By a model of the measured run (stages side by side, calls in flight, CPU time, the consumer, "
    "which is slowed by the pipeline's CPU time; the longest is the step). "
)
"""How the forecast predicts, for the rules whose edits the model can apply."""

BY_PROFILE_ALONE = (
    "the profile alone, as there was no model of tf.data's of the running pipeline: too high where "
    "the operation waits rather than computes"
)
"""What a prediction of less input rests on where tf.data tells nothing."""

MOST_FREED_PERCENT = 99.0
"""Of the step; what would remain of less is not known well enough to divide by."""

PARALLEL_CALLS = (
    f"{FORECAST}Parallel calls divide the operation's time; AUTOTUNE gives as many as there are "
    "CPUs. None where it hangs on whether Python holds the interpreter lock and that is not known."
)


def prefer_forecast(session: Session, finding: Finding) -> Finding:
    """A failed finding with the forecast of its edit in place of the rule's own prediction.

    That knows one operation or one class of the step; the forecast has all of the run beside it.
    The rule's own stays where the forecast can't say, where there is no edit, and where an edit
    changes the waits for first batches, of which the forecast knows nothing.
    """
    if finding.status != "fail" or finding.edit is None or finding.edit.whole_epoch:
        return finding
    speedup = forecast(session, finding.edit).speedup
    if speedup is None:
        return finding
    evidence = {k: value for k, value in finding.evidence.items() if k != "prediction_missing"}
    return finding.model_copy(update={"predicted_speedup": speedup, "evidence": evidence})


def limited(session: Session, finding: Finding, frees: Iterable[StepClass]) -> Finding:
    """A failed finding on speed without a prediction, with the most that its advice could buy.

    The limit is the step over the step without all of these classes of its time; for input it is
    the ceiling, which knows what the profile alone does not. A rule's own limit stays.
    """
    if finding.status != "fail" or finding.about_results or finding.predicted_speedup is not None:
        return finding
    if finding.speedup_at_most is not None:
        return finding
    classes = list(frees)
    at_most = step_without(class_percent(session, {*classes, *_beside(session, classes)}))
    if classes == ["input_wait"] and session.ceiling is not None:
        alone = on_a_repeated_batch(session)
        at_most = alone.steps if alone else session.ceiling.speedup_if_input_free or at_most
    if session.breakdown is None or at_most <= 1.0:
        return finding
    return finding.model_copy(update={"speedup_at_most": round(at_most, 3)})


def ranged(session: Session, finding: Finding, frees: Iterable[StepClass]) -> Finding:
    """With the range in which what it predicts of a step is measured; on CPUs, where it was.

    What frees input and is predicted by the profile alone may gain nothing, and says so.
    """
    speedup = finding.predicted_speedup
    if finding.status != "fail" or speedup is None or finding.part != "steps":
        return finding
    pipeline = session.pipeline
    by_profile = pipeline is not None and pipeline.costs_by_profile_alone and "input_wait" in frees
    if by_profile:
        evidence = {**finding.evidence, "prediction_basis": BY_PROFILE_ALONE}
        finding = finding.model_copy(
            update={"predicted_by_profile_alone": True, "evidence": evidence}
        )
    if on_accelerator(session.environment.devices):
        return finding
    low, high = likely_range(speedup)
    likely = (min(low, 1.0) if by_profile else low, high)
    return finding.model_copy(update={"predicted_range": likely})


def at_most_without(session: Session, compute_percent: float) -> float | None:
    """The most that is bought by so much less compute, in percent of the step; None for nothing."""
    beside = class_percent(session, _beside(session, ["device_compute"]))
    at_most = round(step_without(compute_percent + beside), 3)
    return at_most if compute_percent > 0 and at_most > 1.0 else None


def step_without(percent: float) -> float:
    """The step over the step without so much of it."""
    return 100.0 / (100.0 - min(percent, MOST_FREED_PERCENT))


def _beside(session: Session, freed: Collection[StepClass]) -> list[StepClass]:
    """What grows shorter with the compute where the same CPUs do both.

    Dispatch is then also the time in which operations wait for a core, and input whose threads
    compute on these cores comes sooner.
    """
    if "device_compute" not in freed or on_accelerator(session.environment.devices):
        return []
    wait = session.input_wait
    contended = wait is not None and wait.contention == "cpu"
    return ["dispatch", "input_wait"] if contended else ["dispatch"]


def parallel(session: Session, op: Operation, calls: float, *, on_cpu: bool) -> Prediction:
    """The operation with `calls` in flight instead of one."""
    delay = delay_ms(session, op)
    if delay is None:
        return Prediction(None, "What the operation costs was not measured.")
    if calls <= 1:
        return Prediction(None, "The process may use one CPU only.")
    return less_input(session, delay * (1 - 1 / calls), on_cpu=on_cpu)


def less_input(session: Session, saved_ms: float, *, on_cpu: bool) -> Prediction:
    """The input takes `saved_ms` less per step; `on_cpu` where the work stays and only spreads."""
    ceiling = session.ceiling.speedup_if_input_free if session.ceiling else None
    if session.steps is None or session.breakdown is None or ceiling is None:
        return Prediction(None, "The ceiling of this run is not known.")
    step_ms = session.steps.mean_ms
    wait = session.breakdown.get("input_wait")
    left = step_ms - min(saved_ms, wait.ms if wait else 0.0)
    if on_cpu and session.host is not None:
        left = max(left, step_ms * session.host.cores_busy / session.host.cores_allowed)
    return Prediction(_at_least_one(min(step_ms / left, ceiling)))


def unexplained_factor(session: Session) -> float:
    """How many times longer the input wait is than all delays that were measured, at least 1.

    tf.data does not count what it spends on handing single elements on; that belongs to the
    operations in proportion to their delays.
    """
    explained = _explained_ms(session)
    return max(1.0, class_ms(session, ["input_wait"]) / explained) if explained else 1.0


def uncounted_wait_ms(session: Session) -> float:
    """Input wait of a step that no operation's clock counts, in milliseconds."""
    return max(0.0, class_ms(session, ["input_wait"]) - _explained_ms(session))


def _explained_ms(session: Session) -> float:
    ops = session.pipeline.ops if session.pipeline else []
    return sum(delay_ms(session, op) or 0.0 for op in ops if op.fused_into is None)


def overlapped(session: Session) -> Prediction:
    """Input made beside the step instead of before it: the longer of the two remains."""
    if session.steps is None or session.breakdown is None:
        return Prediction(None, "The step was not measured.")
    wait = class_ms(session, ["input_wait"])
    step_ms = session.steps.mean_ms
    return Prediction(_at_least_one(step_ms / max(wait, step_ms - wait)))


def without(session: Session, saved_ms: float) -> Prediction:
    """The step takes `saved_ms` less on its consumer side."""
    if session.steps is None or saved_ms >= session.steps.mean_ms:
        return Prediction(None, "What would remain of the step is not known.")
    step_ms = session.steps.mean_ms
    return Prediction(_at_least_one(step_ms / (step_ms - saved_ms)))


def _at_least_one(speedup: float) -> float:
    return round(max(1.0, speedup), 3)
