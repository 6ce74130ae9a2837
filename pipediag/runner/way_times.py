"""Times the largest tables of a run and their ways out, in a process of its own, after the run."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pipediag.facts.ending import ended_from_outside
from pipediag.facts.machine import gpu_memory_bytes
from pipediag.facts.table_ways import Shares
from pipediag.measures.missing import Missing
from pipediag.runner.bench_process import Ending, run_bench
from pipediag.runner.progress import OnProgress, TimesTables
from pipediag.runner.timed_ways import TimedWays
from pipediag.sensors.gpus import free_gpu_bytes
from pipediag.sensors.machine_counters import MachineCounters
from pipediag.session.embeddings import Embedding
from pipediag.session.model import Session
from pipediag.session.table_bench import BenchPlan, Result, TableKey, results_in
from pipediag.session.way_times import TableTimes, WayTimes
from pipediag.trials.way_plan import MOST_TABLES, Wanted, wanted
from pipediag.trials.way_times import not_timed, table_times
from pipediag.vocabulary import ScriptOutcome

_ENDED: dict[ScriptOutcome, str] = {
    "interrupted": "The run was interrupted, so its tables were not timed.",
    "timed-out": "`--timeout` ended the run, so its tables were not timed.",
}
_ASKED_TO_END = "The run was asked to end, so its tables were not timed."
STILL_TO_BE_TIMED = "The tables were still to be timed when this was written."
"""What a session says that is saved before."""
_NO_TIME_LEFT = "The time that `--timeout` gives was up before its tables could be timed."


def why_not(session: Session, ends_at: float | None) -> str | None:
    """Why no table of the run can be timed; None where one might be.

    Args:
        session: of the run.
        ends_at: `time.monotonic()` at which `--timeout` has the time be up; None is never.
    """
    script = session.script
    if ended_from_outside(script.outcome, script.status):
        return _ENDED.get(script.outcome, _ASKED_TO_END)
    if not session.embeddings:
        return session.embeddings_missing or "No embedding table was seen."
    if ends_at is not None and ends_at <= time.monotonic():
        return _NO_TIME_LEFT
    return None


def with_way_times(
    session: Session,
    request: TimedWays,
    ids_directory: Path,
    on_progress: OnProgress,
    ends_at: float | None = None,
) -> Session:
    """The session with what its tables cost in time, or why that is not known.

    `ends_at` as in `why_not`.
    """
    began = time.monotonic()
    tables, others = session.embeddings[:MOST_TABLES], session.embeddings[MOST_TABLES:]
    asked = [_asked(session, table, request.buckets, ids_directory) for table in tables]
    try:
        timed = _timed(tables, asked, request, on_progress, ends_at)
    except OSError as error:
        missing = f"The process that times tables could not be run: {error}."
        return session.model_copy(update={"way_times_missing": missing})
    left_out = f"The {MOST_TABLES} largest tables alone are timed."
    found = WayTimes(
        budget_s=request.budget_s,
        took_s=time.monotonic() - began,
        buckets=request.buckets,
        tables=[*timed, *(not_timed(table, left_out) for table in others)],
    )
    return session.model_copy(update={"way_times": found, "way_times_missing": None})


def _asked(
    session: Session, table: Embedding, buckets: int, ids_directory: Path
) -> Wanted | Missing:
    key = TableKey(table.layer, table.variable, table.rows, table.dim)
    file = ids_directory / key.ids_file
    free, _ = MachineCounters().memory()
    if "GPU" in (table.device or ""):
        free = free_gpu_bytes(os.environ.get("CUDA_VISIBLE_DEVICES"))
        if free is None:
            free = gpu_memory_bytes(session)
    return wanted(
        session, table, str(file) if file.exists() else None, Shares(buckets=buckets), free
    )


def _timed(
    tables: Sequence[Embedding],
    asked: Sequence[Wanted | Missing],
    request: TimedWays,
    on_progress: OnProgress,
    ends_at: float | None,
) -> list[TableTimes]:
    """What came of each table."""
    benches = [one.bench for one in asked if isinstance(one, Wanted)]
    results: list[Result] = []
    ending = Ending("")
    if benches:
        left_s = request.budget_s if ends_at is None else ends_at - time.monotonic()
        on_progress(TimesTables(min(request.budget_s, max(0.0, left_s))))
        with TemporaryDirectory(prefix="pipediag-") as directory:
            file = Path(directory) / "results.jsonl"
            plan = BenchPlan(
                benches, request.budget_s, request.buckets, str(file), directory, ends_at
            )
            ending = run_bench(plan, Path(directory) / "plan.json")
            results = list(results_in(file))
    places = iter(range(len(benches)))
    return [
        table_times(table, one, _of(results, next(places)), ending.reason, ending.more_time)
        if isinstance(one, Wanted)
        else not_timed(table, one.reason)
        for table, one in zip(tables, asked, strict=True)
    ]


def _of(results: Sequence[Result], place: int) -> list[Result]:
    return [one for one in results if one.table == place]
