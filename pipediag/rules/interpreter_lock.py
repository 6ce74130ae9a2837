"""What Python in a map does with its time: hold the interpreter lock, release it, or wait.

Waiting shows in CPU time: a call that waits takes time and no CPU. Whether a call that computes
holds the lock shows in who was seen. A sampler needs the lock to look, so it rarely meets a thread
that holds it, while one that released it (inside NumPy, say) is met for as long as it works. Calls
longer than Python's switch interval of 5 ms are made to hand the lock over; those show as time in
which the sampler waited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipediag.rules.plan import measured_at
from pipediag.rules.rule import Threshold
from pipediag.session.host import Host, HotLine
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.vocabulary import Scalar

CPU_OF_CALLS = Threshold(
    "CPU time of the data threads",
    50.0,
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
    several = cores >= SEVERAL_AT_ONCE and (at.parallelism or 1) > 1
    work = _work_unseen(session.host, cores, at_work, several=several)
    if seen >= at_work * SEEN.value:
        work = _work_seen(session.host, cores, calls, several=several)
    return PythonUse(work, evidence, waits)


def data_cores(host: Host) -> float:
    """Cores that tf.data's threads and other Python threads keep busy."""
    return (host.threads.get("tf_data", 0.0) + host.threads.get("python_other", 0.0)) / 100.0


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


def hottest_line(session: Session) -> HotLine | None:
    """The line of Python outside the training loop's thread that was met most often."""
    lines = session.host.hot_python if session.host else []
    others = [line for line in lines if line.thread != "main"]
    return max(others, key=lambda line: line.percent, default=None)


def hottest_line_sentence(session: Session) -> str:
    """Names the hottest line, or nothing where none was sampled."""
    line = hottest_line(session)
    return f" The hottest line is {line.file}:{line.line} in {line.function}." if line else ""
