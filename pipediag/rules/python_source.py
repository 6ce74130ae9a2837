"""What the Python that makes batches does with its time, where a loop's data comes from Python."""

from __future__ import annotations

from pipediag.rules.interpreter_lock import LOCK, data_cores
from pipediag.rules.rule import Threshold
from pipediag.session.model import Session

SOURCE_CPU = Threshold(
    "CPU time of the threads that make batches",
    5.0,
    "% of the step",
    "own choice, equal to the limit on input wait: less can't take that much from the step",
)
COMPUTES = Threshold(
    "CPU time of the threads that make batches",
    50.0,
    "% of what input costs",
    "own choice: below one half, the source waits for something else more than it computes",
)


def input_share(session: Session) -> float | None:
    """Percent of the step that input costs: by the consumer alone, else by what it waits."""
    if session.differential is not None:
        return session.differential.input_share_percent
    share = (session.breakdown or {}).get("input_wait")
    return share.percent if share else None


def python_is_busy(session: Session) -> bool | None:
    """Whether the source's threads could slow the loop; None where that was not measured."""
    if _hides_from_get_next(session):
        return True
    cpu_ms = source_cpu_ms(session)
    if cpu_ms is None or session.steps is None or session.host is None:
        return None
    lock = session.host.lock_percent
    cost_ms = session.steps.mean_ms * (input_share(session) or 0.0) / 100.0
    least_ms = session.steps.mean_ms * SOURCE_CPU.value / 100.0
    computes = cpu_ms >= max(least_ms, cost_ms * COMPUTES.value / 100.0)
    return computes or (lock is not None and lock >= LOCK.value)


def _hides_from_get_next(session: Session) -> bool:
    """Whether the measures found that busy Python threads hide the input's cost in the loop."""
    wait = session.input_wait
    if wait is None or wait.native_percent is None:
        return False
    return wait.method == "differential" and wait.contention == "lock"


def source_cpu_ms(session: Session) -> float | None:
    """CPU time per step that making batches takes: a generator runs on a thread of tf.data."""
    if session.host is None or session.steps is None:
        return None
    own = session.host.python_source_cpu_ms_per_step or 0.0
    return max(own, session.steps.mean_ms * data_cores(session.host))
