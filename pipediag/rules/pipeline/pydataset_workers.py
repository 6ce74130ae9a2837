"""A Keras PyDataset that one thread reads, while the step waits for its batches."""

from __future__ import annotations

from pathlib import Path

from pipediag.facts.limits import INPUT_WAIT
from pipediag.facts.machine import cpus
from pipediag.facts.python_sources import (
    WAITS,
    beside_ms,
    generator_of_keras,
    has_workers,
    pydataset,
    threads_help,
    waits,
    waits_percent,
)
from pipediag.facts.python_work import SEEN, hot_line, source_cpu_ms
from pipediag.rules.pipeline.keras_processes import WHAT_PROCESSES_NEED
from pipediag.rules.pipeline.waiting_calls import WAITING_CALLS
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import Meta, Place
from pipediag.session.edits import Change, Edit, Remove, Replace, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.loops import KerasUse
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

META = Meta(
    id="pydataset-workers",
    name="PyDataset without workers",
    title_failed="A PyDataset is read by one thread, and the step waits for it",
    title_passed="The PyDataset keeps up with the training, or is read by workers",
    looks_at="A Keras PyDataset with one worker; input wait; the CPU time and the stacks of the "
    "thread that calls `__getitem__`.",
    why="Keras calls `__getitem__` for one batch after the other, on one thread. Where it waits "
    "for files or a network, or works in code that releases the interpreter lock, as decoding an "
    "image does, several threads make several batches at once.",
    edit="`super().__init__(workers=N)` in the PyDataset, with `max_queue_size=2 * N` where that "
    "is more than 10. Where its Python holds the lock: `use_multiprocessing=True` as well. "
    f"{WHAT_PROCESSES_NEED}.",
    cost="`__getitem__` is called from several threads at once: an open file, a random generator "
    "or a buffer that it shares must stand that. `max_queue_size` batches are held in memory.",
    bound="Where it waits, the longest of: the step on a repeated batch; its CPU time; its "
    "time over the number of workers. None where it computes: whether its code releases the lock "
    "shows when it is tried.",
    needs=("loop", "keras", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, WAITS, SEEN),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    title_informative="A PyDataset is read by one thread",
    tried_when_informing=True,
)

MOST_WORKERS = 16
_KERAS_QUEUE = 10
"""Keras's own `max_queue_size`: what workers of a small number are not kept waiting by."""

_PROCESSES = (
    "`use_multiprocessing=True` makes processes of the workers, which share no lock: "
    f"{WHAT_PROCESSES_NEED}"
)


def check(session: Session) -> list[Finding]:
    """One finding on the PyDataset of the diagnosed loop."""
    keras = pydataset(session)
    if keras is None:
        return [META.finding("not-applicable", "The loop does not read a PyDataset.")]
    line = hot_line(session.host, "source")
    place = (line.file, line.line) if line else (keras.source_file, keras.source_line)
    if has_workers(keras):
        said = f"It is read by {keras.workers} workers already."
        return [META.finding("pass", said, place=place)]
    return [_finding(session, keras, place)]


def _finding(session: Session, keras: KerasUse, place: Place) -> Finding:
    op = generator_of_keras(session)
    weight = weigh_input(session)
    evidence = {
        **weight.evidence,
        "source_waits_percent": waits_percent(session, op),
        "source_cpu_ms_per_step": source_cpu_ms(session),
    }
    if weight.status != "fail":
        return META.finding("pass", weight.sentence, place=place, evidence=evidence)
    workers = _workers(session, op)
    helps = threads_help(session, op)
    return META.finding(
        "fail" if helps else "informative",
        _advice(keras, workers) if helps else _doubt(keras, workers),
        op_id=op.id if op else None,
        place=place,
        evidence=evidence,
        speedup_at_most=_at_most(session, op, workers),
        edit=_edit(session, op, keras, workers),
        untried="How Keras reads the PyDataset was not recorded.",
    )


def _workers(session: Session, op: Operation | None) -> int:
    """Waiting takes no CPU, so the CPUs do not bound how many wait at once."""
    return WAITING_CALLS if waits(session, op) else max(2, min(MOST_WORKERS, int(cpus(session))))


def _read_by(op: Operation, workers: int) -> Replace:
    queue = 2 * workers
    if queue <= _KERAS_QUEUE:
        return Replace(op.id, "PyDataset", {"workers": workers})
    return Replace(op.id, "PyDataset", {"workers": workers, "max_queue_size": queue})


def _written(workers: int) -> str:
    queue = f", max_queue_size={2 * workers}" if 2 * workers > _KERAS_QUEUE else ""
    return f"`super().__init__(workers={workers}{queue})`"


def _advice(keras: KerasUse, workers: int) -> str:
    return (
        f"Let several threads call `{keras.source}.__getitem__`, which one does now, batch after "
        f"batch: {_written(workers)} in the class, whose `__getitem__` must then stand calls from "
        f"several at once. Where that gains too little: {_PROCESSES}."
    )


def _doubt(keras: KerasUse, workers: int) -> str:
    return (
        f"One thread calls `{keras.source}.__getitem__`, and computes for most of its time. "
        f"Threads ({_written(workers)}) help as far as its code releases the interpreter lock, "
        f"which only a trial shows; {_PROCESSES}."
    )


def _at_most(session: Session, op: Operation | None, workers: int) -> float | None:
    after = beside_ms(session, op, workers)
    if session.steps is None or after is None or not waits(session, op):
        return None
    return round(max(1.0, session.steps.mean_ms / after), 3)


def _edit(session: Session, op: Operation | None, keras: KerasUse, workers: int) -> Edit | None:
    """Read by threads; with them, Keras appends no prefetch and leaves tf.data one thread."""
    if op is None:
        return None
    changes: list[Change] = [_read_by(op, workers)]
    behind = [one for one in (session.pipeline.ops if session.pipeline else []) if _ahead(one, op)]
    changes += [Remove(one.id) for one in behind]
    changes.append(SetOptions({"autotune.enabled": False, "threading.private_threadpool_size": 1}))
    source = Path(keras.source_file).name if keras.source_file else "the script"
    return Edit(
        id=f"{META.id}:{op.id}",
        label=f"workers={workers} for the PyDataset `{keras.source}` in {source}",
        changes=tuple(changes),
        caveat="Measured with threads; processes were not tried.",
    )


def _ahead(one: Operation, op: Operation) -> bool:
    return one.kind == "prefetch" and one.made_by_framework and one.parent_ids == [op.id]
