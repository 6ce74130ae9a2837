"""The summary of a job on the terminal: a line for each worker, and whom the others wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipediag.facts.job import Job, job_of
from pipediag.facts.limits import INPUT_BOUND
from pipediag.facts.names import STEP_CLASS, as_typed
from pipediag.reporters.terminal import MAX_WIDTH, Encoded, prose, right
from pipediag.reporters.words.quantities import milliseconds, number, percent
from pipediag.session.store import load_session
from pipediag.vocabulary import StepClass

_COLUMNS: tuple[tuple[str, tuple[StepClass, ...]], ...] = (
    ("input", ("input_wait",)),
    ("compute", ("device_compute", "device_wait")),
    ("copies", ("device_copy",)),
    ("host", ("dispatch", "python", "compile")),
    ("exchange", ("collective",)),
)
_NAMED = 0.05
"""Part of the own work from which on a class that takes longer is named. Own choice."""


def render_job(directories: Sequence[Path], console: Console) -> None:
    """Print who trains in a job, where each worker's step goes, and which worker is waited for.

    Raises PipediagError: a session can't be read, is of no worker, or two are of one worker.
    """
    job = job_of(load_session(directory) for directory in directories)
    shown: list[RenderableType] = [prose(title(job), "bold")]
    shown += [prose(text) for text in sentences(job)]
    if job.steps:
        shown += [Text(), _table(job)]
    if job.steps:
        name = (job.straggler or job.longest).worker.name
        directory = next((one for one in directories if one.name == name), None)
        if directory is not None:
            shown += [Text(), prose(f"More on {name}: pipediag show {as_typed(directory)}")]
    console.print(Encoded(Group(*shown)), width=min(console.width, MAX_WIDTH), highlight=False)


def title(job: Job) -> str:
    """Return the one sentence on a job."""
    if not job.steps:
        return "No worker has measured steps."
    if len(job.steps) == 1 and job.size > 1:
        return f"{job.steps[0].worker.name} alone of {job.size} workers has measured steps."
    if (waited_for := _waited_for(job)) is not None:
        return waited_for
    if job.exchange_percent >= INPUT_BOUND.value:
        return (
            f"No worker is waited for. Exchanging gradients takes {percent(job.exchange_percent)} "
            "of the step on every worker."
        )
    return f"No worker is waited for. {job.steps[0].verdict.summary}"


def _waited_for(job: Job) -> str | None:
    alone, slowest = job.evaluates_alone, job.straggler
    if alone is not None:
        return (
            f"The others wait for {alone.worker.name} while it evaluates, for "
            f"{percent(alone.evaluation_percent)} of its run."
        )
    if slowest is not None:
        return (
            f"The others wait for {slowest.worker.name}: its own work takes "
            f"{milliseconds(slowest.own_ms)} of a step of {milliseconds(slowest.step_ms)}."
        )
    if job.together:
        return None
    if job.uneven_batches is not None:
        return uneven(job.uneven_batches)
    longest, shortest = job.longest, min(job.steps, key=lambda one: one.step_ms)
    return (
        f"The steps of {longest.worker.name} take longest, {milliseconds(longest.step_ms)}; those "
        f"of {shortest.worker.name} take {milliseconds(shortest.step_ms)}: the workers do not wait "
        "for one another in each step, or launch steps ahead of their devices."
    )


def uneven(batches: tuple[int, int]) -> str:
    """Return the sentence on workers whose epochs differ in length."""
    fewest, most = batches
    return (
        f"An epoch has {fewest:,} batches on one worker and {most:,} on another: it ends with the "
        "shortest, or the workers are in different epochs from then on."
    )


def sentences(job: Job) -> Iterator[str]:
    """Yield what else is known of a job."""
    slowest, bound = job.straggler, job.without_straggler
    if slowest is not None and bound is not None:
        more = [
            f"{STEP_CLASS[name].lower()} {milliseconds(ms)}"
            for name, ms in job.longer_classes(slowest)
            if ms >= _NAMED * slowest.own_ms
        ]
        if more:
            yield f"Longer than on the others, by their mean: {', '.join(more)}."
        yield f"As fast as the next worker, it would make the job at most {number(bound)}x as fast."
    named = slowest or (None if job.together else job.longest)
    if named is not None:
        yield f"{named.worker.name}: {named.verdict.summary}"
    if job.uneven_batches is not None and (job.together or slowest is not None):
        yield uneven(job.uneven_batches)
    yield from _about_the_data(job)
    for name, reason in job.unmeasured.items():
        yield f"{name} has no measured steps: {reason}"
    if job.missing:
        yield f"{job.missing} of {job.size} workers have no session here."


def _about_the_data(job: Job) -> Iterator[str]:
    if job.sharding == "none":
        yield (
            "No pipeline has `shard`: unless the script gives each worker files of its own, all "
            "workers read all data in each epoch."
        )
    elif job.sharding == "behind the work":
        yield (
            f"Each worker makes all batches and drops those of the others, 1 of {job.size} is its "
            "own: the data has fewer files than workers, or none. Call `shard` before the work, in "
            "`distribute_datasets_from_function`, or read more files."
        )


def _table(job: Job) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("Worker", no_wrap=True)
    for name in ("step", *(column for column, _ in _COLUMNS), "own work"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in job.steps:
        shares = [
            percent(100.0 * sum(one.classes_ms[name] for name in classes) / one.step_ms)
            for _, classes in _COLUMNS
        ]
        cells = milliseconds(one.step_ms), *shares, milliseconds(one.own_ms)
        table.add_row(one.worker.name, *map(right, cells))
    return table
