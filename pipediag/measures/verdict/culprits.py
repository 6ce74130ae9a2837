"""The line of the user's code behind a bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipediag.facts.pipeline import bottleneck, filled_shuffles
from pipediag.facts.step import GROUPS
from pipediag.measures.pipeline import slowest
from pipediag.session.loops import Loop, Share
from pipediag.session.model import Host, Session, hot_line
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import NestedCall
from pipediag.tensorflow_names import PYTHON_ADAPTERS
from pipediag.vocabulary import StepClass

_IN_PYTHON = 15.0
"""Percent of the stack samples in which a generator's own lines run where they are named. Own
choice: in fewer, TensorFlow takes longer to take the elements over than Python to make them."""
_MOST_OF_A_STEP = 50.0
"""Percent: what takes more is what the step is, whatever that is divided into."""


@dataclass(frozen=True)
class Culprit:
    """A place to name; `what` is as a user would call it."""

    what: str
    file: str | None
    line: int | None
    op_id: str | None = None
    tied: tuple[Culprit, ...] = ()
    """Operations that cost about as much."""
    filled_by: Culprit | None = None
    """Maker of the elements of a shuffle whose buffer fills before the first batch."""


def input_culprit(session: Session) -> Culprit | None:
    """Return the source of the input wait; None where no operation's cost is known. A source in
    Python is named by its own line or function, one of a framework by what was passed in."""
    pipeline, loop, host = session.pipeline, session.diagnosed_loop(), session.host
    op = bottleneck(pipeline)
    hot = _python_source(host)
    keras = loop.keras if loop else None
    if keras is not None and keras.data_adapter in PYTHON_ADAPTERS:
        source = _quoted(keras.source) or "the Python source"
        if hot is not None:
            return Culprit(source, *hot, op.id if op else None)
        return Culprit(source, keras.source_file, keras.source_line, op.id if op else None)
    if op is None:
        return None
    lines = host.hot_python if host is not None else []
    in_python = sum(one.percent for one in lines if one.thread == "source")
    if op.kind == "from_generator" and hot is not None and in_python >= _IN_PYTHON:
        return Culprit("the generator of `from_generator`", *hot, op.id)
    own = op.made_by_framework and op.helper is None
    if own and keras is not None and keras.source_file is not None:
        what = _quoted(keras.source) or f"`{op.kind}`"
        return Culprit(what, keras.source_file, keras.source_line, op.id)
    tied = pipeline.tied_op_ids if pipeline is not None else []
    others = [other for other in (pipeline.ops if pipeline is not None else []) if other.id in tied]
    return replace(_operation(op), tied=tuple(map(_operation, others)))


def _python_source(host: Host | None) -> tuple[str, int] | None:
    """Return the place of the Python that makes input: the line that runs most, or its function
    where no line of that was seen in half of its samples, as chance then chooses among them."""
    hot = hot_line(host, "source")
    if host is None or hot is None:
        return None
    code = (hot.file, hot.function, hot.thread)
    whole = sum(
        one.percent for one in host.hot_python if (one.file, one.function, one.thread) == code
    )
    if hot.function_line is None or 2 * hot.percent >= whole:
        return hot.file, hot.line
    return hot.file, hot.function_line


def filling_shuffle(session: Session) -> Culprit | None:
    """Return the shuffle whose buffer fills with what something costly above it makes, or None."""
    for shuffle, makers in filled_shuffles(session):
        limiting = slowest(makers[::-1])
        maker = next((op for op in makers if op.id in limiting[:1]), makers[0])
        return replace(_operation(shuffle), filled_by=_operation(maker))
    return None


def _operation(op: Operation) -> Culprit:
    made_by = f" of `{op.helper}`" if op.helper is not None else ""
    return Culprit(f"`{op.kind}`{made_by}", op.file, op.line, op.id)


_SEEN_OFTEN = 5.0
"""Percent of the stack samples in which a line is to be seen. Own choice."""


def python_culprit(breakdown: Mapping[StepClass, Share], host: Host | None) -> Culprit | None:
    """Return the hottest line of the training thread, where Python is clearly the largest part of
    the overhead: one long collection of garbage in the profile makes it look so."""
    others = [name for name in GROUPS["overhead"] if name != "python"]
    most = max(breakdown[name].ci95_percent[1] for name in others)
    if breakdown["python"].ci95_percent[0] < most:
        return None
    hot = hot_line(host, "main")
    if hot is None or hot.percent < _SEEN_OFTEN:
        return None
    return Culprit(f"`{hot.function}`", hot.file, hot.line)


def eager_culprit(loop: Loop | None) -> Culprit | None:
    """Return the function that makes a step eagerly, if the script has one."""
    step = loop.eager_step if loop is not None and not loop.step_functions else None
    return Culprit(f"`{step.function}`", step.file, step.line) if step is not None else None


def call_in_each_step(loop: Loop | None) -> NestedCall | None:
    """Return the call of `predict` or `evaluate` that most of each step goes to, if any."""
    most = max(loop.nested if loop else [], key=lambda call: call.percent, default=None)
    return most if most is not None and most.percent >= _MOST_OF_A_STEP else None


def _quoted(name: str | None) -> str | None:
    return f"`{name}`" if name else None
