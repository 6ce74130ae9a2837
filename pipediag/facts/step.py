"""The parts of the step, and the most that training would gain if input took no time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pipediag.facts.limits import INPUT_WAIT, bound, limits_within
from pipediag.facts.run import loop_time
from pipediag.session.edits import SHORTEST_CUT, touched
from pipediag.session.loops import Share, Steps
from pipediag.session.model import Session
from pipediag.session.recorded_loops import KerasUse, LoopFacts
from pipediag.session.trials import SpeedUp
from pipediag.vocabulary import Group, StepClass

_SHAPE = re.compile(r"shape=\(([^)]*)\)")
_ROWS_OF_IDS = re.compile(r"TensorSpec\(shape=\([^,)]*, (\d+)\), dtype=tf\.u?int\d+,")


def lengths_vary(element_spec: str) -> bool:
    """Return True if a shape has an unknown dimension after the batch's own."""
    return any("None" in shape.split(",", 1)[-1] for shape in _SHAPE.findall(element_spec))


def lengths_to_cut(element_spec: str) -> list[int]:
    """Return the lengths of rows of ids in a batch that may be cut, one for each part of it."""
    lengths = map(int, _ROWS_OF_IDS.findall(element_spec))
    return [length for length in lengths if length >= SHORTEST_CUT]


def shapes_vary(loop: LoopFacts) -> bool:
    """Return True if its batches differ in shape, as was seen or as their spec allows."""
    return loop.shapes_vary or lengths_vary(loop.element_spec or "")


def keras_3(session: Session) -> KerasUse | None:
    """Return how the diagnosed loop trains with Keras 3; None where it does not.

    What was imported tells it only where the model was not asked: libraries such as
    `tensorflow_hub` import `tf_keras` besides the Keras that trains.
    """
    keras = session.keras
    known = keras.legacy if keras is not None else None
    legacy = session.environment.legacy_keras if known is None else known
    return None if legacy else keras


GROUPS: dict[Group, tuple[StepClass, ...]] = {
    "compute": ("device_compute",),
    "transfer": ("device_copy", "collective"),
    "overhead": ("dispatch", "python", "compile", "device_wait"),
}
"""Overhead is what the host does, or waits for, while no device computes or copies: XProf's kernel
launch and host compute, tracing and compiling again at every step, and synchronisation."""

CALL_CLASSES: tuple[StepClass, ...] = ("dispatch", "python")
"""Work of the host for each call of the step, whatever the size of its batch."""

FREED_BY_FEWER_CALLS: tuple[StepClass, ...] = (*CALL_CLASSES, "device_wait")
"""Classes that shrink with fewer calls, as results are then read less often, too."""

UNEVEN = 1.2
"""Mean over median, or the other way round, from which they speak of different steps. Own choice:
twice the tenth by which repeated runs of one script differ."""


def group_percents(breakdown: Mapping[StepClass, Share]) -> dict[Group, float]:
    """Return the percent of the step in each group, the largest first."""
    sums = {group: sum(breakdown[name].percent for name in GROUPS[group]) for group in GROUPS}
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def percent_of_step(session: Session, ms: float | None) -> float | None:
    """Return the time in percent of the mean step; None where either is not known."""
    if ms is None or session.steps is None or not session.steps.mean_ms:
        return None
    return 100.0 * ms / session.steps.mean_ms


def class_ms(session: Session, classes: Iterable[StepClass]) -> float:
    """Return the milliseconds of the step in these classes together."""
    shares = session.breakdown or {}
    return sum(shares[name].ms for name in classes if name in shares)


def class_percent(session: Session, classes: Iterable[StepClass]) -> float:
    """Return the percent of the step in these classes together."""
    shares = session.breakdown or {}
    return sum(shares[name].percent for name in classes if name in shares)


def most_percent(session: Session, classes: Iterable[StepClass]) -> float:
    """Return the upper ends of the intervals of these classes together, in percent of the step."""
    shares = session.breakdown or {}
    return min(100.0, sum(shares[name].ci95_percent[1] for name in classes if name in shares))


def consumer_ms(session: Session) -> float | None:
    """Return what a step takes apart from its input, while this pipeline runs; None if not known.

    It is the step by its ceiling, or else the step less its input wait. Where pipeline and consumer
    share the CPUs, it is the step less what GetNext waited: that the pipeline's CPU time slows the
    consumer is no waiting.
    """
    if session.steps is None or session.breakdown is None:
        return None
    step_ms, wait = session.steps.mean_ms, session.input_wait
    if wait is not None and wait.contention == "cpu" and wait.native_percent is not None:
        return step_ms * (1 - wait.native_percent / 100.0)
    if session.ceiling is not None and session.ceiling.speedup_if_input_free:
        return step_ms / session.ceiling.speedup_if_input_free
    return step_ms - class_ms(session, ["input_wait"])


def uneven(steps: Steps) -> str | None:
    """Return why the mean is not what most steps take; None where it is about that."""
    if steps.mean_ms > UNEVEN * steps.median_ms:
        return (
            "A few long steps dominate. They raise the mean, which the breakdown adds up to, above "
            "the time of most steps."
        )
    return None


def on_torch(session: Session) -> bool:
    """Return True if Keras runs on PyTorch, which has no XLA and no calls of several steps."""
    return session.environment.keras_backend == "torch"


def only_input_is_told(session: Session) -> bool:
    """Return True if the profiler can't see PyTorch's compute, and the input wait is known.

    More steps would add nothing. The kernels of a GPU are seen, whoever launches them.
    """
    shares = session.breakdown
    if shares is None or not on_torch(session) or shares["device_compute"].percent:
        return False
    return len(limits_within(shares["input_wait"].ci95_percent)) < 2


def ceiling(session: Session) -> float | None:
    """Return the most that free input buys in the step: the larger of two measurements, at its
    upper end.

    A pipeline that computes on the CPUs of the step, or holds the GIL, costs more than the waits.
    Of steps that compile, a repeated batch says nothing: no length is new to it. None where the
    step is input wait alone.
    """
    waits, alone = session.ceiling, session.differential
    if waits is None or waits.speedup_if_input_free is None:
        return None
    by_waits = waits.ci95[1] if waits.ci95 is not None else waits.speedup_if_input_free
    share = alone.input_share_percent if alone is not None else 0.0
    if share >= 100.0 or class_percent(session, ["compile"]) >= INPUT_WAIT.value:
        return by_waits
    return max(by_waits, 100.0 / (100.0 - share))


def most_of_free_input(session: Session) -> float | None:
    """Return how many times as fast training is at most where input takes no time.

    Of the whole loop where its time is known, else of the steps. A trial that gained more proves
    the measurements too low: a repeated batch runs through Python of its own. None as above.
    """
    measured = ceiling(session)
    if measured is None:
        return None
    most, time = max(measured, _tried_in_the_pipeline(session)), loop_time(session)
    if time is None:
        return most
    saved_s = time.first_batches_s + time.steps_s * (1.0 - 1.0 / most)
    return bound(time.total_s, saved_s) or most


def _tried_in_the_pipeline(session: Session) -> float:
    """Return the largest gain of the steps that trials of the pipeline confirmed, at its upper end.

    1 where none was confirmed. The combination counts where all that is in it is of the pipeline.
    """
    of_input = {
        finding.edit.id: finding.trial
        for finding in session.findings
        if finding.edit is not None
        and finding.edit.loop_id is None
        and touched(finding.edit.changes) <= {"elements", "options"}
    }
    tried: list[SpeedUp] = [trial for trial in of_input.values() if trial.state == "confirmed"]
    if session.combined is not None and set(session.combined.findings) <= set(of_input):
        tried.append(session.combined)
    gains = [one.ci95[1] for one in tried if one.ci95 is not None and one.basis == "step"]
    return max(gains, default=1.0)
