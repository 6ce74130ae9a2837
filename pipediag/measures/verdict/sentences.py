"""The line of the user's code behind a bottleneck, and the sentences of the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipediag.facts.limits import INPUT_BOUND
from pipediag.facts.names import STEP_CLASS, in_sentence, length, place
from pipediag.facts.pipeline import filled_shuffles
from pipediag.facts.run import LoopTime, Where, rows_to_have_back, whole_in_words
from pipediag.facts.script import cut_short, ending
from pipediag.facts.step import GROUPS
from pipediag.measures.pipeline import slowest
from pipediag.session.ledger import Run
from pipediag.session.loops import Loop, Share
from pipediag.session.model import Host, OtherProcesses, Session, hot_line
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import NestedCall
from pipediag.tensorflow_names import PYTHON_ADAPTERS, is_too_old, too_old_sentence
from pipediag.vocabulary import Bottleneck, Group, LoopRole, RunPartName, StepClass

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
    op = session.operation(pipeline.bottleneck_op_id) if pipeline is not None else None
    hot = _python_source(host)
    keras = loop.keras if loop else None
    source = f"`{keras.source}`" if keras is not None and keras.source else None
    if keras is not None and keras.data_adapter in PYTHON_ADAPTERS:
        at = hot or (keras.source_file, keras.source_line)
        return Culprit(source or "the Python source", *at, op.id if op else None)
    if op is None:
        return None
    lines = host.hot_python if host is not None else []
    in_python = sum(one.percent for one in lines if one.thread == "source")
    if op.kind == "from_generator" and hot is not None and in_python >= _IN_PYTHON:
        return Culprit("the generator of `from_generator`", *hot, op.id)
    own = op.made_by_framework and op.helper is None
    if own and keras is not None and keras.source_file is not None:
        return Culprit(source or f"`{op.kind}`", keras.source_file, keras.source_line, op.id)
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
    steps = loop.eager_steps if loop is not None and not loop.step_functions else []
    step = next(iter(steps), None)
    return Culprit(f"`{step.function}`", step.file, step.line) if step is not None else None


def call_in_each_step(loop: Loop | None) -> NestedCall | None:
    """Return the call of `predict` or `evaluate` that most of each step goes to, if any."""
    calls = loop.nested if loop else []
    return next((one for one in calls if one.percent >= _MOST_OF_A_STEP), None)


_SPENT: dict[RunPartName, str] = {
    "before_training": "is spent before the first training step",
    "compile": "goes to tracing and compiling functions",
    "epoch_start": "is spent waiting for the first batch of each epoch",
    "evaluation": "is spent in evaluation",
    "epoch_end": "is spent between epochs, in callbacks and other code",
    "between_loops": "is spent between training loops",
    "after_training": "is spent after training",
}
_OF_STEPS: dict[Bottleneck, str] = {
    "balanced": "No single part limits its steps.",
    "inconclusive": "It is not clear what limits its steps.",
}


def run_sentence(run: Run, where: Where, of_steps: Bottleneck) -> str:
    """Return the share of the run, in what, at which line, and what limits the steps."""
    row, seconds = where.row, sum(one.seconds for one in rows_to_have_back(run, where.part))
    text = f"{where.percent:.0f} % of {whole_in_words(run)} {_SPENT[where.part]}"
    if row is not None and row.line is not None and seconds > 0:
        what = row.what or ("a loop" if row.loop_id else "code")
        often = f", {row.count:,} times" if row.count is not None and row.count > 1 else ""
        share = 100.0 * row.seconds / seconds
        most = "" if share > 99 else f"{share:.0f} % of it "
        text += f": {most}{what}{place(row.file, row.line)}{often}"
    return f"{text}. {_OF_STEPS.get(of_steps, f'Its steps are {of_steps}-bound.')}"


def costs_most(culprit: Culprit) -> str:
    """Return what costs most, with what costs about as much, as a clause."""
    first, *others = [f"{one.what}{place(one.file, one.line)}" for one in (culprit, *culprit.tied)]
    if not others:
        return f"{first} costs the most"
    return f"{', '.join([first, *others[:-1]])} and {others[-1]} cost the most, about equally"


def input_sentence(share: Share, culprit: Culprit | None, at_most: float | None) -> str:
    """Return the sentence of an input-bound step; `at_most` is the bound on free input."""
    text = f"{share.percent:.0f} % of each step is spent on input"
    if culprit is not None:
        text += f"; {costs_most(culprit)}"
    return f"{text}.{_if_free(at_most)}"


def _if_free(at_most: float | None) -> str:
    if at_most is None:
        return ""
    return f" If input were free, training would be at most {at_most:.3g}x as fast."


_NAMED_PERCENT = 5.0
"""Classes of the step that take less are not named. Own choice."""
_AS_IF_INPUT_BOUND = 100.0 / (100.0 - INPUT_BOUND.value)


def other_sentence(
    group: Group, percent: float, breakdown: Mapping[StepClass, Share], at_most: float | None
) -> str:
    """Return the sentence of another bottleneck, with its classes; `at_most` as above, named where
    it is as large as that of an input-bound step: a wait that is smaller has a sentence already."""
    named = [
        f"{in_sentence(STEP_CLASS[name])} {breakdown[name].percent:.0f} %"
        for name in GROUPS[group]
        if group != "compute" and breakdown[name].percent >= _NAMED_PERCENT
    ]
    text = f"{percent:.0f} % of each step is {'device compute' if group == 'compute' else group}"
    text += f" ({', '.join(named)})" if named else ""
    return f"{text}.{_if_free(at_most) if (at_most or 0.0) >= _AS_IF_INPUT_BOUND else ''}"


def first_batches_sentence(run: Run, time: LoopTime, culprit: Culprit | None) -> str:
    """Return the sentence of a run that is input-bound between its epochs, and the upper bound: in
    the first epoch the pipeline has to start anyway."""
    each = f", {length(time.first_batch_ms / 1000)} each time" if time.first_batch_ms else ""
    whole_s = run.whole_s
    percent = sum(row.percent for row in rows_to_have_back(run, "epoch_start"))
    text = (
        f"{percent:.0f} % of {whole_in_words(run)} is spent waiting for the first batch of each "
        f"epoch{each}"
    )
    if culprit is not None and culprit.filled_by is not None:
        shuffle, maker = (
            f"{one.what}{place(one.file, one.line)}" for one in (culprit, culprit.filled_by)
        )
        text += f"; meanwhile, {shuffle} fills with the output of {maker}"
    elif culprit is not None:
        text += f"; {costs_most(culprit)}"
    left_s = whole_s - time.first_batches_s
    if 0.001 * whole_s < left_s < 0.999 * whole_s:
        saved = "all but the first of these waits" if run.scope == "run" else "these waits"
        faster = f"{whole_s / left_s:.3g}x as fast"
        text += f". Without {saved}, {whole_in_words(run)} would be at most {faster}"
    return text + "."


NEEDS = (
    "Pipediag needs a training loop: Keras `fit`, a loop that takes batches from a tf.data "
    "dataset and updates variables with them, or one that calls `train_on_batch`, a tf.function or "
    "a Keras optimizer for each batch."
)

NO_TENSORFLOW = (
    "TensorFlow is not installed in the same environment as pipediag. Install the build that you "
    "use, or `pip install 'pipediag[tensorflow]'`, and run this again."
)

BUSY_CPU_S = 1.0
"""Processes that took less together trained nothing: importing TensorFlow alone takes longer."""

_MOST_SEEN = 4
_ROLES: dict[LoopRole, str] = {
    "training": "training",
    "validation": "validation",
    "evaluate": "`evaluate`",
    "predict": "`predict`",
    "adapt": "`adapt`",
    "preview": "a preview of a few batches",
    "preparation": "a pass over a dataset before training",
    "reading": "a pass over a dataset without a model",
}


def no_loop_sentence(session: Session) -> str:
    """Return what was seen instead of a training loop, and what pipediag needs."""
    version = session.environment.tensorflow
    if version is not None and is_too_old(version):
        return f"{too_old_sentence(version)} The script ran without being measured."
    others, ended = _others_sentence(session.other_processes), ""
    where = " in the script's own process" if others else ""
    what = _seen(session) or _tensorflow_sentence(session)
    if cut_short(session.script):
        how = session.script.detail or ending(session.script)
        ended = f" The script ended early: {how}{'' if how.endswith(('.', '!', '?')) else '.'}"
    return f"No training loop was seen{where}.{ended} {what} {others or NEEDS}"


def _seen(session: Session) -> str | None:
    seen = [
        f"{use.what}{place(use.file, use.line)} "
        f"({'once' if use.count == 1 else f'{use.count} times'})"
        for use in session.other_uses
    ]
    for one in session.loops:
        what = _ROLES.get(one.role) or (
            f"a loop over a dataset that does not train ({one.role_reason})"
        )
        seen.append(f"{what}{place(one.file, one.line)} ({one.steps} batches)")
    more = f" and {len(seen) - _MOST_SEEN} more" if len(seen) > _MOST_SEEN else ""
    return "What was seen: " + "; ".join(seen[:_MOST_SEEN]) + more + "." if seen else None


def _tensorflow_sentence(session: Session) -> str:
    """Return how far its own process came with TensorFlow."""
    if "No module named 'tensorflow'" in (session.script.detail or ""):
        return NO_TENSORFLOW
    if session.environment.tensorflow is None:
        return "The script's process did not import TensorFlow."
    return "The script's process imported TensorFlow; no step of a training was recorded."


def _others_sentence(others: OtherProcesses | None) -> str:
    if others is None or others.cpu_s < BUSY_CPU_S:
        return ""
    started = "another process" if others.count == 1 else f"{others.count} other processes"
    return (
        f"It started {started} ({others.cpu_s:.0f} s of CPU time in total), which pipediag does "
        "not measure. If the training runs there (multiprocessing, subprocess, a launcher), run "
        "it in the main process to measure it."
    )
