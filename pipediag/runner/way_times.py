"""Times the largest tables of a run and their ways out, in a process of its own, after the run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pipediag.facts.machine import gpu_memory_bytes
from pipediag.facts.table_ways import Shares
from pipediag.measures.missing import Missing
from pipediag.runner.interpreter_flags import interpreter_flags
from pipediag.runner.progress import OnProgress, TimesTables
from pipediag.runner.timed_ways import TimedWays
from pipediag.sensors.machine_counters import MachineCounters
from pipediag.session.embeddings import Embedding
from pipediag.session.model import Session
from pipediag.session.table_bench import BenchPlan, Result, TableKey, results_in
from pipediag.session.way_times import TableTimes, WayTimes
from pipediag.trials.way_plan import MOST_TABLES, Wanted, wanted
from pipediag.trials.way_times import MORE_TIME, not_timed, table_times

BENCH = Path(__file__).parents[1] / "table_bench" / "start.py"
START_S = 120.0
"""How long TensorFlow may take to start, and a last round to end, before the process is killed."""
_LONGEST_REASON = 300
"""Characters of what a failed process said last."""


def with_way_times(
    session: Session, request: TimedWays, ids_directory: Path, on_progress: OnProgress
) -> Session:
    """The session with what its tables cost in time, or why that is not known."""
    if not session.embeddings:
        missing = session.embeddings_missing or "No embedding table was seen."
        return session.model_copy(update={"way_times_missing": missing})
    began = time.monotonic()
    tables, others = session.embeddings[:MOST_TABLES], session.embeddings[MOST_TABLES:]
    asked = [_asked(session, table, request.buckets, ids_directory) for table in tables]
    timed = _timed(tables, asked, request, on_progress)
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
        free = gpu_memory_bytes(session)
    return wanted(
        session, table, str(file) if file.exists() else None, Shares(buckets=buckets), free
    )


def _timed(
    tables: Sequence[Embedding],
    asked: Sequence[Wanted | Missing],
    request: TimedWays,
    on_progress: OnProgress,
) -> list[TableTimes]:
    benches = [one.bench for one in asked if isinstance(one, Wanted)]
    results: list[Result] = []
    ended = ""
    if benches:
        on_progress(TimesTables(request.budget_s))
        with TemporaryDirectory(prefix="pipediag-") as directory:
            file = Path(directory) / "results.jsonl"
            plan = BenchPlan(benches, request.budget_s, request.buckets, str(file), directory)
            ended = _run(plan, Path(directory) / "plan.json")
            results = list(results_in(file))
    places = iter(range(len(benches)))
    return [
        table_times(table, one, _of(results, next(places)), ended)
        if isinstance(one, Wanted)
        else not_timed(table, one.reason)
        for table, one in zip(tables, asked, strict=True)
    ]


def _of(results: Sequence[Result], place: int) -> list[Result]:
    return [one for one in results if one.table == place]


def _run(plan: BenchPlan, plan_file: Path) -> str:
    """Let the process do what it can; how it ended, as the reason for what it did not tell."""
    plan.write(plan_file)
    limit_s = plan.budget_s + START_S
    try:
        done = subprocess.run(
            [sys.executable, *interpreter_flags(sys.orig_argv), str(BENCH), str(plan_file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"The process that times tables had not ended after {limit_s:.0f} s. {MORE_TIME}"
    if done.returncode == 0:
        return f"The time was up before its turn came. {MORE_TIME}"
    if done.returncode < 0:
        return (
            f"The process that times tables was killed by signal {-done.returncode}, as where "
            "memory ran out."
        )
    said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:_LONGEST_REASON]
    return f"The process that times tables ended with {done.returncode}: {said}"
