"""What Python in a pipeline does with its time: hold the interpreter lock, release it, or wait.

Three limits on waits for the lock answer three questions: whether it may be fought for at all, as
far as the sampler tells (`LOCK_FOUGHT_FOR_PERCENT`); whether one call of a map holds it (`LOCK`);
whether several calls at once do (`LOCK_OF_SEVERAL`).

Waiting shows in CPU time: a call that waits takes time and no CPU. Whether a call that computes
holds the lock shows in who was seen. A sampler needs the lock to look, so it rarely meets a thread
that holds it, while one that released it (inside NumPy, say) is met for as long as it works. Calls
longer than Python's switch interval of 5 ms are made to hand the lock over; those show as time in
which the sampler waited.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from pipediag.facts.limits import INPUT_FINE_PERCENT, Threshold
from pipediag.facts.pipeline import measured_at
from pipediag.session.host import Host, HotLine
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import HotThread, Scalar

COMPUTES_PERCENT = 50.0
"""CPU time, of the time that Python takes, from which it computes more than it waits. Own choice:
below one half, waiting is the larger part."""

CPU_OF_CALLS = Threshold(
    "CPU time of the data threads",
    COMPUTES_PERCENT,
    "% of the time in which a call of the map is in flight",
    "own choice: below one half, waiting is the larger part",
)
SEEN = Threshold(
    "stack samples that meet the function",
    50.0,
    "% of those expected from its time",
    "own measurements: 80 % or more of a function that sorts in NumPy or sleeps, 2 to 12 % of a "
    "short loop in Python",
)
LOCK = Threshold(
    "wait for the interpreter lock",
    30.0,
    "% of the time in which a thread that woke had to wait for it",
    "own measurements: 4 to 17 % on a loaded machine where no call held it for long",
)
LOCK_OF_SEVERAL = 18.0
"""The same limit where several calls are in flight and compute on one core only, which is what the
lock does to them: just above what was measured where no call held it for long."""
SEVERAL_CALLS = 1.5
"""Calls in flight from which more than one core would be busy if they could compute at once."""
SEVERAL_AT_ONCE = 1.2
"""Cores from which several parallel calls must be computing at once, which the lock would not
allow. Of a serial map it says nothing: what is beyond one core is other threads' work."""
NEARLY_IDLE = 0.25
"""Cores below which a function that is not seen waits inside a library. A function that holds the
lock took 0.3 on a machine with twice as many busy threads as cores."""

SOURCE_CPU = Threshold(
    "CPU time of the threads that make batches",
    INPUT_FINE_PERCENT,
    "% of the step",
    "own choice, equal to the limit on input wait: less can't take that much from the step",
)
COMPUTES = Threshold(
    "CPU time of the threads that make batches",
    COMPUTES_PERCENT,
    "% of what input costs",
    "own choice: below one half, the source waits for something else more than it computes",
)

SEEN_WAITING = Threshold(
    "input wait that the loop sees",
    50.0,
    "% of what input costs",
    "own choice: from one half on, the source's own pace is the reason, below it the lock",
)

LOCK_FOUGHT_FOR_PERCENT = 10.0
"""Share of time spent waiting for the interpreter lock from which it may be fought for. Own choice:
with an idle lock the sampler's late wake-ups stay under it on the samples of this project. Busy
CPUs make wake-ups late as well, so it counts only where Python threads were seen running."""

SOURCE_SAMPLES_PERCENT = 10.0
"""Share of the stack samples that met a Python thread beside the training loop in the user's code.
Own choice. It counts only with waits for the lock, as a thread in `sleep` is met there too."""

SOURCE_BUSY_PERCENT = 10.0
"""CPU time of other Python threads, in percent of the step, from which they count as busy. Own
choice: below it they can't have slowed the loop by more than twice the 5 % that matter."""

PYTHON_PIPELINE_CPU_PERCENT = 50.0
"""CPU use of the threads that make the input, of one CPU, from which Python functions in them
compute rather than wait. Own choice: on this project's samples those that wait stay under 35, those
that compute lie over 55."""

NOTHING_ELSE_PERCENT = 90.0
"""Share of the step in which the loop is seen to wait, from which whatever computes beside its
thread makes the input. Own choice: what the step itself computes is a tenth of it at most."""

WAITING_CPU_PERCENT = 35.0
"""The same, up to which they rather wait, as measured there: what waits does not hold the lock,
whatever made the sampler's wake-ups late."""

PythonWork = Literal["holds the lock", "releases the lock", "waits", "unclear"]


@dataclass(frozen=True)
class PythonUse:
    work: PythonWork
    evidence: dict[str, Scalar]
    waits_percent: float = 0.0
    """Share of the time in which a call is in flight and no CPU is taken."""


def python_use(session: Session, op: Operation) -> PythonUse:
    """How the Python behind this map spends its time, from CPU time, stacks and wall time."""
    at = measured_at(session, op)
    wall_ms = at.self_ms_per_step
    if session.host is None or session.steps is None or wall_ms is None:
        return PythonUse("unclear", {"wall_ms_per_step": wall_ms})
    cores = data_cores(session.host)
    calls = wall_ms / session.steps.mean_ms
    seen = sum(line.percent for line in session.host.hot_python if line.thread != "main")
    evidence: dict[str, Scalar] = {
        "calls_in_flight": calls,
        "data_threads_cores": cores,
        "seen_in_stacks_percent": seen,
        "lock_percent": session.host.lock_percent,
    }
    at_work = min(1.0, calls)
    waits = 100.0 * (1.0 - min(1.0, cores / at_work)) if at_work else 0.0
    several = computes_at_once(session, op)
    work = _work_unseen(session.host, cores, at_work, several=several)
    if seen >= at_work * SEEN.value:
        work = _work_seen(session.host, cores, calls, several=several)
    return PythonUse(work, evidence, waits)


def computes_at_once(session: Session, op: Operation) -> bool:
    """Whether several calls of this operation compute at once, so that none holds the lock."""
    at = measured_at(session, op)
    return (at.parallelism or 1) > 1 and data_cores(session.host) >= SEVERAL_AT_ONCE


def data_cores(host: Host | None) -> float:
    """Cores that tf.data's and other Python threads keep busy; 0 where they were not sampled."""
    pools = host.threads if host is not None else {}
    return (pools.get("tf_data", 0.0) + pools.get("python_other", 0.0)) / 100.0


def _work_seen(host: Host, cores: float, calls: float, *, several: bool) -> PythonWork:
    """For a function that stack samples meet; `calls` of it are in flight on average."""
    if cores < min(1.0, calls) * CPU_OF_CALLS.value / 100.0:
        return "waits"
    if several:
        return "releases the lock"
    if host.lock_percent is None:
        return "unclear"
    limit = LOCK_OF_SEVERAL if calls >= SEVERAL_CALLS else LOCK.value
    return "holds the lock" if host.lock_percent >= limit else "releases the lock"


def _work_unseen(host: Host, cores: float, at_work: float, *, several: bool) -> PythonWork:
    """For a function that stack samples rarely meet: it holds the lock, or waits in a library.

    `at_work` is the share of the time in which at least one call is in flight.
    """
    if cores < at_work * NEARLY_IDLE:
        return "waits"
    if several:
        return "releases the lock"
    return "unclear" if host.lock_percent is None else "holds the lock"


def hot_line(host: Host | None, *threads: HotThread) -> HotLine | None:
    """The line that was seen running most often on threads of these kinds."""
    lines = host.hot_python if host else []
    of_threads = [line for line in lines if line.thread in threads]
    return max(of_threads, key=lambda line: line.percent, default=None)


def hottest_line(session: Session) -> HotLine | None:
    """The line of Python outside the training loop's thread that was met most often."""
    return hot_line(session.host, "source", "other")


def hottest_line_sentence(session: Session) -> str:
    """Names the hottest line, or nothing where none was sampled."""
    line = hottest_line(session)
    if line is None:
        return ""
    return f" The hottest line is {PurePath(line.file).name}:{line.line} in {line.function}."


def input_share(session: Session) -> float | None:
    """Percent of the step that input costs: by the consumer alone, else by what it waits.

    A repeated batch is of one shape, so that what steps take to compile is missing there as well.
    """
    shares = session.breakdown or {}
    if session.differential is not None:
        compiled = shares["compile"].percent if "compile" in shares else 0.0
        return max(0.0, session.differential.input_share_percent - compiled)
    return shares["input_wait"].percent if "input_wait" in shares else None


def python_is_busy(session: Session) -> bool | None:
    """Whether the source's threads could slow the loop; None where that was not measured."""
    if hides_from_get_next(session):
        return True
    cpu_ms = source_cpu_ms(session)
    if cpu_ms is None or session.steps is None or session.host is None:
        return None
    lock = session.host.lock_percent
    cost_ms = session.steps.mean_ms * (input_share(session) or 0.0) / 100.0
    least_ms = session.steps.mean_ms * SOURCE_CPU.value / 100.0
    computes = cpu_ms >= max(least_ms, cost_ms * COMPUTES.value / 100.0)
    return computes or (lock is not None and lock >= LOCK.value)


def hides_from_get_next(session: Session) -> bool:
    """Whether the measures found that busy Python threads hide the input's cost in the loop."""
    wait = session.input_wait
    if wait is None or wait.native_percent is None:
        return False
    return wait.method == "differential" and wait.contention == "lock"


def seen_waiting_percent(session: Session) -> float | None:
    """Part of the step in which the loop waits, and not what else its input takes from it."""
    wait, share = session.input_wait, (session.breakdown or {}).get("input_wait")
    if wait is not None and wait.native_percent is not None:
        return wait.native_percent
    return share.percent if share is not None else None


def mostly_hidden(session: Session) -> bool | None:
    """Whether less than half of what input costs is seen as waiting; None where one is not known.

    A loop that waits for its next batch leaves the interpreter lock to whoever makes that.
    """
    waited, share = seen_waiting_percent(session), input_share(session)
    if waited is None or share is None:
        return None
    return 100.0 * waited < SEEN_WAITING.value * share


def source_cpu_ms(session: Session) -> float | None:
    """CPU time per step that making batches takes: a generator runs on a thread of tf.data.

    Where threads of Python's were not told from TensorFlow's, tf.data's count as others. If others
    compute more then, it is None, unless the loop waits so long that they are all that computes.
    """
    if session.host is None or session.steps is None:
        return None
    own, cores = session.host.python_source_cpu_ms_per_step, data_cores(session.host)
    others = session.host.threads.get("others", 0.0) / 100.0
    if own is None and others > cores:
        if (seen_waiting_percent(session) or 0.0) < NOTHING_ELSE_PERCENT:
            return None
        cores += others
    return max(own or 0.0, session.steps.mean_ms * cores)
