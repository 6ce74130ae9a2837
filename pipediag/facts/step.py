"""What the step consists of: its classes, grouped by what can be the bottleneck."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipediag.facts.machine import on_accelerator
from pipediag.session.model import Session
from pipediag.session.steps import Share, Steps
from pipediag.vocabulary import Group, StepClass

GROUPS: dict[Group, tuple[StepClass, ...]] = {
    "compute": ("device_compute",),
    "transfer": ("device_copy", "collective"),
    "overhead": ("dispatch", "python", "compile", "device_wait"),
}
"""Overhead is what the host does, or waits for, while no device computes or copies: XProf's kernel
launch and host compute, tracing and compiling again at every step, and synchronisation."""

CALL_CLASSES: tuple[StepClass, ...] = ("dispatch", "python")
"""What the host does for each call of the step, whatever the size of its batch."""

FREED_BY_FEWER_CALLS: tuple[StepClass, ...] = (*CALL_CLASSES, "device_wait")
"""What becomes less with fewer calls, as results are then read less often, too."""

UNEVEN = 1.2
"""Mean over median, or the other way round, from which they speak of different steps. Own choice:
twice the tenth by which repeated runs of one script differ."""


def group_percents(breakdown: Mapping[StepClass, Share]) -> dict[Group, float]:
    """Percent of the step in each group, the largest first."""
    sums = {group: sum(breakdown[name].percent for name in GROUPS[group]) for group in GROUPS}
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def group_range(session: Session, percent: float) -> tuple[float, float]:
    """Return the least and most percent of the step that a group with this percent may take.

    The profile divides the step, and on a CPU a profiled step takes longer than one without the
    profiler. How that extra time divides over the groups is not measured: all of it may belong to
    this group, or none.
    """
    ratio = session.perturbation.ratio if session.perturbation is not None else None
    if ratio is None or ratio <= 1.0 or on_accelerator(session.environment.devices):
        return percent, percent
    profiled = percent * ratio
    return max(0.0, profiled - 100.0 * (ratio - 1.0)), min(100.0, profiled)


def class_ms(session: Session, classes: Iterable[StepClass]) -> float:
    """Milliseconds of the step in these classes together."""
    shares = session.breakdown or {}
    return sum(shares[name].ms for name in classes if name in shares)


def class_percent(session: Session, classes: Iterable[StepClass]) -> float:
    """Percent of the step in these classes together."""
    shares = session.breakdown or {}
    return sum(shares[name].percent for name in classes if name in shares)


def most_percent(session: Session, classes: Iterable[StepClass]) -> float:
    """Percent of the step in these classes at most: the upper ends of their intervals, together."""
    shares = session.breakdown or {}
    return min(100.0, sum(shares[name].ci95_percent[1] for name in classes if name in shares))


def consumer_ms(session: Session) -> float | None:
    """What a step takes beside its input, while this pipeline runs; None without a breakdown.

    Step over ceiling where there is one, as its definition; otherwise step less input wait. Where
    the ceiling is that of the consumer alone, as the two share the CPUs, it is the step less what
    GetNext waited: the pipeline's CPU time slows the consumer, which is no waiting.
    """
    if session.steps is None or session.breakdown is None:
        return None
    step_ms = session.steps.mean_ms
    waited = _waited_beside_shared_cpus(session)
    if waited is not None:
        return step_ms * (1 - waited / 100.0)
    if session.ceiling is not None and session.ceiling.speedup_if_input_free:
        return step_ms / session.ceiling.speedup_if_input_free
    return step_ms - class_ms(session, ["input_wait"])


def _waited_beside_shared_cpus(session: Session) -> float | None:
    """What GetNext waited, by tf.data's own clock, where the input takes CPUs from the consumer."""
    wait = session.input_wait
    return wait.native_percent if wait is not None and wait.contention == "cpu" else None


def uneven(steps: Steps) -> str | None:
    """Why the mean is not what most steps take, as a sentence; None where it is about that."""
    if steps.mean_ms > UNEVEN * steps.median_ms:
        return (
            "Few long steps dominate: they make the mean, which the breakdown adds up to, larger "
            "than what most steps take."
        )
    if steps.mean_ms * UNEVEN < steps.median_ms:
        return "Some steps are much shorter than most, which makes the mean smaller."
    return None
