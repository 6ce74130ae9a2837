"""Python functions of a pipeline, by what was measured of their calls, and where they stand.

Capture takes wall time and CPU time around each call. The difference, off-CPU time, says that the
calling thread waited, not for what: for a disk, a network, another call that holds the GIL. Whether
several calls at once overlap only a trial can show.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.facts.limits import Threshold
from pipediag.facts.names import exact_time, line_name
from pipediag.facts.order import LINES_AROUND, culprit_place
from pipediag.facts.pipeline import calls_python, operations
from pipediag.session.model import Host, HotLine, Session, hot_line
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import Callback
from pipediag.vocabulary import Scalar

WAITS_FIRST = Threshold(
    "off-CPU time of a Python function",
    20.0,
    "% of its calls' time",
    "own choice: it only decides what is tried first",
)

_SEEN_PERCENT = 10.0
"""Share of the stack samples below which a line is not shown. Own choice."""


@dataclass(frozen=True)
class PythonCalls:
    """The calls of one operation's Python functions, as they were measured in its baseline."""

    per_step: float
    wall_ms: float
    """Per step, summed over calls that run at once."""
    cpu_ms: float
    """Per step."""

    @property
    def off_cpu_ms(self) -> float:
        """Time per step in which a call ran and its thread was on no CPU."""
        return max(0.0, self.wall_ms - self.cpu_ms)

    @property
    def off_cpu_percent(self) -> float:
        return 100.0 * self.off_cpu_ms / self.wall_ms


def call_times(op: Operation | None) -> str:
    """Return the sentence on what a call of its Python takes; nothing where none was measured."""
    calls = python_calls(op)
    if calls is None:
        return ""
    wall, off = calls.wall_ms / calls.per_step, calls.off_cpu_ms / calls.per_step
    return (
        f" Each call of its Python takes {exact_time(wall)}, of which {exact_time(off)} is "
        "off-CPU time."
    )


def python_calls(op: Operation | None) -> PythonCalls | None:
    """Return what was measured of this operation's Python; None where that is nothing."""
    if op is None or op.python_wall_ms_per_step is None or op.python_cpu_ms_per_step is None:
        return None
    if not op.python_calls_per_step or op.python_wall_ms_per_step <= 0:
        return None
    return PythonCalls(
        op.python_calls_per_step, op.python_wall_ms_per_step, op.python_cpu_ms_per_step
    )


def python_evidence(op: Operation | None) -> dict[str, Scalar]:
    """Return the numbers for a finding, or nothing where none were measured."""
    calls = python_calls(op)
    if calls is None:
        return {}
    return {
        "python_calls_per_step": calls.per_step,
        "python_call_ms": calls.wall_ms / calls.per_step,
        "python_call_off_cpu_ms": calls.off_cpu_ms / calls.per_step,
        "python_off_cpu_percent": calls.off_cpu_percent,
    }


def waits_first(op: Operation | None) -> bool:
    """Return True if calls that overlap their waits are what to try first."""
    calls = python_calls(op)
    return calls is not None and calls.off_cpu_percent >= WAITS_FIRST.value


def data_cores(host: Host | None) -> float:
    """Return the cores that tf.data's and other Python threads keep busy; 0 if not sampled."""
    pools = host.threads if host is not None else {}
    return (pools.get("tf_data", 0.0) + pools.get("python_other", 0.0)) / 100.0


def hottest_line_sentence(session: Session) -> str:
    """Return the line of Python seen most often outside the training loop's thread, if any."""
    line = hot_line(session.host, "source", "other")
    if line is None:
        return ""
    return f" The hottest line is {line_name(line.file, line.line)} in {line.function}."


def python_behind(session: Session) -> HotLine | None:
    """Return the line in which the Python that the culprit calls was seen most often.

    None where it stands among the lines around the culprit, where other Python makes input as well,
    and where it was seen too seldom.
    """
    place = culprit_place(session)
    if place is None or session.verdict.bottleneck != "input":
        return None
    op, hot = session.operation(place.op_id), hot_line(session.host, "source")
    if op is None or hot is None or hot.percent < _SEEN_PERCENT or not only_python(session, op):
        return None
    beside = hot.file == place.file and abs(hot.line - (place.line or 0)) <= LINES_AROUND
    return None if beside else hot


def only_python(session: Session, op: Operation) -> bool:
    """Return True if its Python is all that makes input."""
    return [
        one for one in operations(session) if one.kind == "from_generator" or calls_python(one)
    ] == [op]


def per_batch_callbacks(session: Session) -> list[Callback]:
    """Return the callbacks of the diagnosed loop that override a per-batch method."""
    callbacks = session.keras.callbacks if session.keras is not None else []
    return [callback for callback in callbacks if callback.batch_hooks]


def lines_of(session: Session, callback: Callback) -> list[HotLine]:
    """Return the hot lines of the training thread within the callback's per-batch methods."""
    hot = session.host.hot_python if session.host else []
    return [
        line
        for line in hot
        if line.file == callback.file
        and line.thread == "main"
        and line.function.rsplit(".", 1)[-1] in callback.batch_hooks
    ]


def callback_percent(session: Session, callback: Callback) -> float:
    """Return the percent of the step in the callback's per-batch methods.

    By a clock, or by stack samples where Keras calls it on another thread.
    """
    sampled = sum(line.percent for line in lines_of(session, callback))
    return max(callback.step_percent or 0.0, sampled)


def callbacks_percent(session: Session) -> float:
    """Return the percent of the step in any per-batch callback, by the clock or by samples."""
    callbacks = per_batch_callbacks(session)
    lines = [line for cb in callbacks for line in lines_of(session, cb)]
    unique = {(line.file, line.line, line.function): line.percent for line in lines}
    clocked = {(cb.name, cb.file, cb.line): cb.step_percent or 0.0 for cb in callbacks}
    return max(sum(clocked.values()), sum(unique.values()))
