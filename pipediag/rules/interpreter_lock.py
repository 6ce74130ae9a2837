"""What Python called from a map does with its time: hold the interpreter lock, release it, or wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipediag.rules.plan import measured_at
from pipediag.rules.rule import Threshold
from pipediag.session.model import HotLine, Operation, Scalar, Session

LOCK = Threshold(
    "wait for the interpreter lock",
    30.0,
    "% of the time in which a thread that woke had to wait for it",
    "own choice: a lock that is free for more than two thirds of the time does not set the pace",
)
CPU_OF_WALL = Threshold(
    "CPU time of the data threads",
    50.0,
    "% of the map's wall time",
    "own choice: below one half, waiting is the larger part; a sleeping or downloading function "
    "comes out under 5 %",
)

PythonWork = Literal["holds the lock", "releases the lock", "waits", "unclear"]


@dataclass(frozen=True)
class PythonUse:
    work: PythonWork
    evidence: dict[str, Scalar]


def python_use(session: Session, op: Operation) -> PythonUse:
    """How the Python behind this map spends its time, from the host sampler and the wall time."""
    host = session.host
    if host is None or session.steps is None:
        return PythonUse("unclear", {})
    wall_ms = measured_at(session, op).self_ms_per_step
    busy_percent = host.threads.get("tf_data", 0.0) + host.threads.get("python_other", 0.0)
    cpu_ms = session.steps.mean_ms * busy_percent / 100.0
    evidence: dict[str, Scalar] = {
        "lock_percent": host.lock_percent,
        "wall_ms_per_step": wall_ms,
        "data_threads_cpu_ms_per_step": cpu_ms,
    }
    if host.lock_percent is not None and host.lock_percent >= LOCK.value:
        return PythonUse("holds the lock", evidence)
    if wall_ms is None:
        return PythonUse("unclear", evidence)
    if cpu_ms < wall_ms * CPU_OF_WALL.value / 100.0:
        return PythonUse("waits", evidence)
    if host.lock_percent is None:
        return PythonUse("unclear", evidence)
    return PythonUse("releases the lock", evidence)


def hottest_line(session: Session) -> HotLine | None:
    """The line of Python outside the training loop's thread that ran most."""
    lines = session.host.hot_python if session.host else []
    return max(
        (line for line in lines if line.thread != "main"),
        key=lambda line: line.percent,
        default=None,
    )


def hottest_line_sentence(session: Session) -> str:
    """Names the hottest line, or nothing where none was sampled."""
    line = hottest_line(session)
    if line is None:
        return ""
    return (
        f" The hottest line is {line.file}:{line.line} in {line.function} ({line.percent:.0f} % "
        "of samples)."
    )
