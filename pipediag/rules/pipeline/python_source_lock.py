"""A PyDataset or Python generator that is slow, or takes the interpreter lock from the loop."""

from __future__ import annotations

from pathlib import PurePath

from pipediag.facts.limits import INPUT_WAIT, Threshold
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import operations
from pipediag.facts.python_sources import (
    generator_of_keras,
    has_workers,
    pydataset,
    threads_help,
    waits,
    wall_ms,
)
from pipediag.facts.python_work import (
    COMPUTES,
    LOCK,
    SEEN_WAITING,
    SOURCE_CPU,
    hottest_line,
    hottest_line_sentence,
    input_share,
    mostly_hidden,
    python_is_busy,
    seen_waiting_percent,
    source_cpu_ms,
)
from pipediag.rules.pipeline.cached_generator import instead
from pipediag.rules.pipeline.keras_processes import WHAT_PROCESSES_NEED
from pipediag.rules.rule import Meta, Place
from pipediag.session.findings import Finding
from pipediag.session.host import HotLine
from pipediag.session.loops import KerasUse
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import PYTHON_ADAPTERS
from pipediag.vocabulary import Scalar

ONE_LINE = Threshold(
    "stack samples that meet one line of the source",
    50.0,
    "%",
    "own choice: below one half, most of the time goes elsewhere",
)
META = Meta(
    id="python-source-lock",
    name="Python source and the interpreter lock",
    title_failed="A Python data source slows the training loop by holding the interpreter lock",
    title_passed="The Python data source leaves the training loop alone",
    looks_at="Loops fed by a PyDataset or a Python generator: the consumer alone on a repeated "
    "batch against the real step, the CPU time of Python threads beside the loop's, the wait for "
    "the lock.",
    why="The thread that makes batches and the training loop fight for one lock, so the cost "
    "appears in the consumer and not as input wait: a step of 8.3 ms with 9 % input wait fell to "
    "3.0 ms when its batches were made beforehand. Where the loop is seen to wait, the source is "
    "slow by itself, and the finding says so.",
    edit="Make batches in other processes (a PyDataset's `workers` with "
    "`use_multiprocessing=True`), with whole-array NumPy, or with tf.data.",
    cost="Processes copy what the dataset holds and start slowly; batches may come in another "
    "order.",
    bound="The real step over the longest of: the step on a repeated batch; the source's CPU "
    "time (that of tf.data's threads, which run it) spread over the CPUs, with what it waits. None "
    "where the consumer was not measured alone.",
    needs=("loop", "steps"),
    thresholds=(INPUT_WAIT, SOURCE_CPU, COMPUTES, LOCK, SEEN_WAITING, ONE_LINE),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    untried="It needs the source rewritten, or run in other processes; pipediag can't do that for "
    "you.",
)


def check(session: Session) -> list[Finding]:
    """One finding on the source of the diagnosed loop."""
    keras, generator = _keras_source(session), _generator(session)
    if keras is None and generator is None:
        return [META.finding("not-applicable", "The loop's data does not come from Python.")]
    place: Place = (generator.file, generator.line) if generator else (None, None)
    if keras is not None:
        place = (keras.source_file, keras.source_line)
    evidence = _evidence(session)
    busy, share = python_is_busy(session), input_share(session)
    alone = session.differential is not None
    if busy is False or (alone and share is not None and share < INPUT_WAIT.value):
        return [META.finding("pass", "", place=place, evidence=evidence)]
    if not alone and (busy is None or share is None or share < INPUT_WAIT.value):
        reason = (
            session.differential_missing or "The consumer was not measured on a repeated batch."
        )
        advice = f"{reason} Without that, what Python takes from the training loop is not known."
        return [META.finding("inconclusive", advice, place=place, evidence=evidence)]
    line = hottest_line(session)
    finding = META.finding(
        "fail",
        _advice(session, keras),
        op=generator,
        place=(line.file, line.line) if line else place,
        evidence=evidence,
        speedup_at_most=_at_most(session),
        title=None if _by_the_lock(session) else _slow_title(keras),
    )
    return [finding.model_copy(update={"needs_first": _gentler(session)})]


def _by_the_lock(session: Session) -> bool:
    """Whether the source costs the loop its own time, and is not seen to be waited for."""
    return mostly_hidden(session) is not False


def _slow_title(keras: KerasUse | None) -> str:
    made = keras is not None and keras.data_adapter == "PyDatasetAdapter"
    source = "A PyDataset" if made else "A Python generator"
    return f"{source} makes batches more slowly than training takes them"


def _gentler(session: Session) -> str | None:
    """The rule whose advice leaves the source as it is, where that helps: to be followed first."""
    keras, generator = pydataset(session), _generator(session)
    if keras is not None and not has_workers(keras):
        helps = threads_help(session, generator_of_keras(session))
        return "pydataset-workers" if helps else None
    return "waiting-generator" if generator is not None and waits(session, generator) else None


def _keras_source(session: Session) -> KerasUse | None:
    loop = session.diagnosed_loop()
    keras = loop.keras if loop else None
    return keras if keras and keras.data_adapter in PYTHON_ADAPTERS else None


def _generator(session: Session) -> Operation | None:
    return next(iter(operations(session, "from_generator")), None)


def _evidence(session: Session) -> dict[str, Scalar]:
    host, alone, wait = session.host, session.differential, session.input_wait
    return {
        "step_ms": session.steps.mean_ms if session.steps else None,
        "step_on_repeated_batch_ms": alone.step_ms if alone else None,
        "input_share_percent": alone.input_share_percent if alone else None,
        "native_input_wait_percent": wait.native_percent if wait else None,
        "source_cpu_ms_per_step": source_cpu_ms(session),
        "lock_percent": host.lock_percent if host else None,
    }


def _advice(session: Session, keras: KerasUse | None) -> str:
    line, first, hot = hottest_line(session), "", hottest_line_sentence(session)
    if line is not None and line.percent >= ONE_LINE.value:
        first, hot = _of_one_line(line), ""
    if keras is not None and keras.data_adapter == "PyDatasetAdapter":
        return (
            f"{first}Make the batches in other processes: "
            f"`super().__init__(workers={max(2, int(cpus(session)))}, use_multiprocessing=True)`, "
            f"or build each with whole-array NumPy, which releases the lock. "
            f"{WHAT_PROCESSES_NEED}.{hot}"
        )
    rewrite = (
        f"{first}Build each batch with whole-array NumPy or in tf.data instead of Python loops: "
        f"{_reason(session)}{hot}"
    )
    cached = instead(session) if keras is None else None
    return f"{cached} {rewrite[0].lower()}{rewrite[1:]}" if cached else rewrite


def _reason(session: Session) -> str:
    if _by_the_lock(session):
        return "the generator and the training loop share one interpreter lock."
    assert session.steps is not None
    waited = session.steps.mean_ms * (seen_waiting_percent(session) or 0.0) / 100.0
    cpu = source_cpu_ms(session)
    computes = f" It computes for {cpu:.1f} ms a step." if cpu else ""
    return f"training waits {waited:.1f} ms of each step for the generator.{computes}"


def _of_one_line(line: HotLine) -> str:
    where = f"{PurePath(line.file).name}:{line.line} in `{line.function}`"
    return (
        f"Make {where} cheaper first: it was running in {line.percent:.0f} % of the stack samples. "
    )


def _at_most(session: Session) -> float | None:
    if session.differential is None or session.steps is None:
        return None
    source_ms = source_cpu_ms(session) or 0.0
    left = max(session.differential.step_ms, source_ms / cpus(session) + _waited_ms(session))
    return round(max(1.0, session.steps.mean_ms / left), 3)


def _waited_ms(session: Session) -> float:
    """What the source waits per step, which no other way to compute makes shorter."""
    op = _generator(session) or generator_of_keras(session)
    if not waits(session, op):
        return 0.0
    return (wall_ms(session, op) or 0.0) - (source_cpu_ms(session) or 0.0)
