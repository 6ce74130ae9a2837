"""Python that makes the elements of a pipeline: a generator, a PyDataset, or what a map calls."""

from __future__ import annotations

from pipediag.facts.culprit import LINES_AROUND, culprit_place
from pipediag.facts.graph_ops import calls_python
from pipediag.facts.limits import Threshold
from pipediag.facts.pipeline import delay_ms, operations
from pipediag.facts.python_work import (
    SOURCE_SAMPLES_PERCENT,
    hides_from_get_next,
    hot_line,
    input_share,
    mostly_hidden,
    python_use,
    source_cpu_ms,
)
from pipediag.session.host import HotLine
from pipediag.session.loops import KerasUse
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

WAITS = Threshold(
    "time in which the source takes no CPU",
    30.0,
    "% of the time that it takes",
    "own choice: a thread that computes on busy CPUs, or fights for the interpreter lock, seems to "
    "wait for up to a quarter of its time",
)


def pydataset(session: Session) -> KerasUse | None:
    """How `fit` reads a Keras PyDataset, where the diagnosed loop does."""
    loop = session.diagnosed_loop()
    keras = loop.keras if loop else None
    return keras if keras and keras.data_adapter == "PyDatasetAdapter" else None


def has_workers(keras: KerasUse) -> bool:
    """Whether Keras reads it by workers: from two threads on, or by any process."""
    workers = 1 if keras.workers is None else keras.workers
    return workers > 1 or (workers > 0 and bool(keras.use_multiprocessing))


def generator_of_keras(session: Session) -> Operation | None:
    """The generator that Keras makes of what it is given."""
    ops = session.pipeline.ops if session.pipeline else []
    made = (op for op in ops if op.made_by_framework and op.helper is None)
    return next((op for op in made if op.kind == "from_generator"), None)


def running_line(session: Session, op: Operation) -> tuple[str | None, int | None]:
    """The script's line that a generator is met in most often, where no other Python makes input;
    otherwise that of the call which made the dataset."""
    line = hot_line(session.host, "source") if _alone(session, op) else None
    return (line.file, line.line) if line else (op.file, op.line)


def python_behind(session: Session) -> HotLine | None:
    """The line in which the Python that the culprit calls was met most often.

    None where it stands among the lines around the culprit, where other Python makes input as well,
    so that either may have been met, and where it was met too seldom to tell.
    """
    place = culprit_place(session)
    if place is None or session.verdict.bottleneck != "input":
        return None
    op, hot = session.operation(place.op_id), hot_line(session.host, "source")
    if op is None or hot is None or hot.percent < SOURCE_SAMPLES_PERCENT or not _alone(session, op):
        return None
    beside = hot.file == place.file and abs(hot.line - (place.line or 0)) <= LINES_AROUND
    return None if beside else hot


def _alone(session: Session, op: Operation) -> bool:
    """Whether its Python is all that makes input."""
    return [
        one for one in operations(session) if one.kind == "from_generator" or calls_python(one)
    ] == [op]


def wall_ms(session: Session, op: Operation | None) -> float | None:
    """What making the elements takes per step on their one thread, in milliseconds.

    By tf.data's clock, or by what the step takes for its input, whichever is longer: a fight for
    the interpreter lock shows in the loop's own thread.
    """
    if session.steps is None:
        return None
    step_ms = session.steps.mean_ms
    share = input_share(session)
    known = [
        delay_ms(session, op) if op is not None else None,
        step_ms * share / 100.0 if share is not None else None,
    ]
    longest = max((ms for ms in known if ms is not None), default=None)
    return None if longest is None else min(step_ms, longest)


def waits_percent(session: Session, op: Operation | None) -> float | None:
    """Part of that time in which the source takes no CPU; None where that was not measured."""
    wall, cpu = wall_ms(session, op), source_cpu_ms(session)
    if wall is None or wall <= 0 or cpu is None:
        return None
    return 100.0 * max(0.0, 1.0 - cpu / wall)


def waits(session: Session, op: Operation | None) -> bool:
    """Whether the source waits for a good part of its time, so that several could wait at once.

    What fights the training loop for the interpreter lock waits for that, unless the loop itself is
    waiting for most of the time.
    """
    if hides_from_get_next(session) and mostly_hidden(session) is not False:
        return False
    percent = waits_percent(session, op)
    return percent is not None and percent >= WAITS.value


def threads_help(session: Session, op: Operation | None) -> bool:
    """Whether several threads would make more than one: it waits, or releases the lock."""
    if waits(session, op):
        return True
    return op is not None and python_use(session, op).work == "releases the lock"


def beside_ms(session: Session, op: Operation | None, copies: int) -> float | None:
    """A step's milliseconds where as many of the source run at once and one at a time computes.

    None where the consumer's own time, or the source's, was not measured.
    """
    wall, cpu = wall_ms(session, op), source_cpu_ms(session)
    if session.steps is None or wall is None or cpu is None:
        return None
    if session.differential is not None:
        alone = session.differential.step_ms
    else:
        alone = session.steps.mean_ms * (1.0 - (input_share(session) or 0.0) / 100.0)
    return max(alone, min(cpu, wall), wall / copies)
