"""The session as tables: one a file, a header always, units in the column names.

Each begins with the run's id, so that tables of several runs can be put together. Times called
`start_ms`, `at_ms` and `run_start_ms` are of one clock, which starts with the recording; steps have
the number that `steps.csv` gives them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pipediag.encoding.markup import write_csv
from pipediag.facts.devices import block_start_ms, profile_clock
from pipediag.facts.names import run_id
from pipediag.reporters.tables.detail_rows import (
    COPY_COLUMNS,
    EVIDENCE_COLUMNS,
    HOT_PYTHON_COLUMNS,
    copy_rows,
    evidence_rows,
    hot_python_rows,
)
from pipediag.reporters.tables.device_rows import (
    DEVICE_COLUMNS,
    GAP_COLUMNS,
    Row,
    device_rows,
    gap_rows,
)
from pipediag.reporters.tables.embedding_rows import EMBEDDING_COLUMNS, embedding_rows
from pipediag.session.devices import DeviceActivity
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from pipediag.vocabulary import POOLS, Scalar

BREAKDOWN_COLUMNS = (
    "class",
    "ms",
    "percent",
    "ci95_percent_low",
    "ci95_percent_high",
)
LOOP_COLUMNS = (
    "id",
    "kind",
    "role",
    "role_reason",
    "diagnosed",
    "file",
    "line",
    "function",
    "steps",
    "planned_steps",
    "elapsed_s",
    "projected_s",
    "median_step_ms",
    "batch_size",
)
WINDOW_COLUMNS = (
    "kind",
    "loop_id",
    "start_ms",
    "duration_ms",
    "steps",
    "first_step_index",
    "last_step_index",
    "complete",
    "reason",
)


def breakdown_rows(session: Session) -> Iterator[Row]:
    """One row a class of the step's time; the percents add up to 100."""
    for name, share in (session.breakdown or {}).items():
        low, high = share.ci95_percent
        yield {
            "class": name,
            "ms": share.ms,
            "percent": share.percent,
            "ci95_percent_low": low,
            "ci95_percent_high": high,
        }


def loop_rows(session: Session) -> Iterator[Row]:
    """One row a place that took batches."""
    for loop in session.loops:
        yield {name: getattr(loop, name) for name in LOOP_COLUMNS}


def window_rows(session: Session) -> Iterator[Row]:
    """One row a window; of the diagnosed loop's with the steps of `steps.csv` that it holds."""
    for window in session.windows:
        end_ms = window.start_ms + window.duration_ms
        within = [
            row.index
            for row in session.step_rows
            if row.window == window.kind and window.start_ms <= row.start_ms < end_ms
        ]
        yield {
            **window.model_dump(),
            "first_step_index": min(within, default=None),
            "last_step_index": max(within, default=None),
        }


STEP_COLUMNS = (
    "index",
    "window",
    "block",
    "start_ms",
    "duration_ms",
    "input_wait_ms",
    "batches",
)
RUN_COLUMNS = (
    "part",
    "seconds",
    "percent",
    "basis",
    "ci95_percent_low",
    "ci95_percent_high",
    "count",
    "what",
    "file",
    "line",
    "loop_id",
    "waits_for",
    "waits_for_file",
    "waits_for_line",
)
PIPELINE_COLUMNS = (
    "position",
    "id",
    "kind",
    "name",
    "file",
    "line",
    "code",
    "function",
    "parent_ids",
    "elements_per_step",
    "self_ms_per_step",
    "latency_ms_per_step",
    "bytes_per_element",
    "parallelism",
    "autotuned",
    "buffered_elements",
    "buffer_size_elements",
    "inserted_by_tensorflow",
    "fused_into",
    "removed_by_tensorflow",
    "bottleneck",
)
FINDING_COLUMNS = (
    "rule",
    "title",
    "status",
    "severity",
    "file",
    "line",
    "op_id",
    "evidence",
    "advice",
    "effect_on_results",
    "condition",
    "trial_state",
    "trial_reason",
    "trial_speedup",
    "trial_speedup_low",
    "trial_speedup_high",
    "trial_blocks",
    "needs_first",
    "edit_id",
    "edit_label",
    "trial_consumer",
    "trial_caveats",
    "subject",
    "speedup_at_most",
    "trial_basis",
    "trial_pipeline_speedup",
    "trial_pipeline_speedup_low",
    "trial_pipeline_speedup_high",
    "part",
    "run_speedup",
    "run_speedup_low",
    "run_speedup_high",
    "run_before_s",
    "run_after_s",
    "run_basis",
    "run_once_s",
)
TRIAL_COLUMNS = (
    "arm",
    "round",
    "examples_per_s",
    "batches",
    "duration_ms",
    "first_step_ms",
    "loop",
    "start_ms",
)
GAPS_OF_A_RUN_COLUMNS = (*GAP_COLUMNS, "run_start_ms", "step_index")
RUN_ID = "run_id"
HOST_COLUMNS = (
    "at_ms",
    "window",
    "cpu_percent",
    "rss_bytes",
    "available_bytes",
    "io_wait_percent",
    "read_bytes_per_s",
    "gpu_percent",
    *(f"{pool}_cpu_percent_of_a_core" for pool in POOLS),
)


@dataclass(frozen=True)
class Table:
    """Rows of one kind, each with some of the columns."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Row]


def files(session: Session) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield each file's name and what makes its text, so that an error in one costs no other."""
    for table in tables(session):
        yield f"{table.name}.csv", partial(as_text, table.columns, table.rows)


def tables(session: Session) -> Iterator[Table]:
    """The same before they are text."""
    run = run_id(session)
    for table in _tables(session):
        rows = ({RUN_ID: run, **row} for row in table.rows)
        yield Table(table.name, (RUN_ID, *table.columns), rows)


def _tables(session: Session) -> Iterator[Table]:
    yield Table("run", RUN_COLUMNS, _run_rows(session))
    yield Table("breakdown", BREAKDOWN_COLUMNS, breakdown_rows(session))
    yield Table("loops", LOOP_COLUMNS, loop_rows(session))
    yield Table("windows", WINDOW_COLUMNS, window_rows(session))
    yield Table("steps", STEP_COLUMNS, (row.model_dump() for row in session.step_rows))
    yield Table("pipeline", PIPELINE_COLUMNS, _pipeline_rows(session))
    yield Table("embeddings", EMBEDDING_COLUMNS, embedding_rows(session))
    yield Table("findings", FINDING_COLUMNS, _finding_rows(session))
    yield Table("evidence", EVIDENCE_COLUMNS, evidence_rows(session))
    yield Table("trials", TRIAL_COLUMNS, _trial_rows(session))
    yield Table("gaps", GAPS_OF_A_RUN_COLUMNS, _gap_rows(session))
    yield Table("devices", DEVICE_COLUMNS, device_rows(session.devices))
    yield Table("copies", COPY_COLUMNS, copy_rows(session))
    yield Table("host", HOST_COLUMNS, _host_rows(session))
    yield Table("hot_python", HOT_PYTHON_COLUMNS, hot_python_rows(session))


def devices_table(devices: Sequence[DeviceActivity]) -> str:
    """The table of devices, of a session or of any profile."""
    return as_text(DEVICE_COLUMNS, device_rows(devices))


def _trial_rows(session: Session) -> Iterator[Row]:
    runs = [session.trials] if session.trials else []
    for run in (*runs, *session.evaluation_trials):
        for block in run.blocks:
            row = block.model_dump(exclude={"since_began_ms"})
            yield {**row, "loop": run.loop_id, "start_ms": block_start_ms(run, block)}


def _gap_rows(session: Session) -> Iterator[Row]:
    """With the place of each among the steps of the run, where the profile's clock is known."""
    clock = profile_clock(session)
    gaps = (gap for device in session.devices for gap in device.gaps)
    for row, gap in zip(gap_rows(session.devices), gaps, strict=True):
        yield {
            **row,
            "run_start_ms": clock.run_ms(gap.start_ms) if clock else None,
            "step_index": clock.step_index(gap.step) if clock else None,
        }


def as_text(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """Return the table as CSV, with a header."""
    stream = io.StringIO()
    write_csv(stream, columns, (_in_order(row, columns) for row in rows))
    return stream.getvalue()


def _in_order(row: Row, columns: Sequence[str]) -> list[Scalar]:
    assert row.keys() <= set(columns), row.keys()
    return [row.get(name) for name in columns]


def _run_rows(session: Session) -> Iterator[Row]:
    for part in session.run.parts if session.run else []:
        low, high = part.ci95_percent or (None, None)
        row = part.model_dump(exclude={"ci95_percent"})
        yield {**row, "ci95_percent_low": low, "ci95_percent_high": high}


def _pipeline_rows(session: Session) -> Iterator[Row]:
    if session.pipeline is None:
        return
    for position, op in enumerate(session.pipeline.ops):
        yield {
            "position": position,
            "id": op.id,
            "kind": op.kind,
            "name": op.name,
            "file": op.file,
            "line": op.line,
            "code": op.code,
            "function": op.function.name if op.function else None,
            "parent_ids": " ".join(op.parent_ids),
            "elements_per_step": op.elements,
            "self_ms_per_step": op.self_ms_per_step,
            "latency_ms_per_step": op.latency_ms_per_step,
            "bytes_per_element": op.bytes_per_element,
            "parallelism": op.parallelism,
            "autotuned": op.autotuned,
            "buffered_elements": op.buffered_elements,
            "buffer_size_elements": op.buffer_size,
            "inserted_by_tensorflow": op.inserted_by_tensorflow,
            "fused_into": op.fused_into,
            "removed_by_tensorflow": op.removed_by_tensorflow,
            "bottleneck": op.id == session.pipeline.bottleneck_op_id,
        }


def _finding_rows(session: Session) -> Iterator[Row]:
    for finding in session.findings:
        trial = finding.trial
        low, high = trial.ci95 or (None, None)
        alone_low, alone_high = trial.pipeline_ci95 or (None, None)
        yield {
            "rule": finding.rule,
            "title": finding.title,
            "status": finding.status,
            "severity": finding.severity,
            "file": finding.file,
            "line": finding.line,
            "op_id": finding.op_id,
            "evidence": "; ".join(f"{name}={value}" for name, value in finding.evidence.items()),
            "advice": finding.advice,
            "effect_on_results": finding.effect_on_results,
            "condition": finding.condition,
            "trial_state": trial.state,
            "trial_reason": trial.reason,
            "trial_speedup": trial.speedup,
            "trial_speedup_low": low,
            "trial_speedup_high": high,
            "trial_blocks": trial.blocks,
            "needs_first": finding.needs_first,
            "edit_id": finding.edit.id if finding.edit else None,
            "edit_label": finding.edit.label if finding.edit else None,
            "trial_consumer": trial.consumer,
            "trial_caveats": " ".join(trial.caveats),
            "subject": finding.subject,
            "speedup_at_most": finding.speedup_at_most,
            "trial_basis": trial.basis,
            "trial_pipeline_speedup": trial.pipeline_speedup,
            "trial_pipeline_speedup_low": alone_low,
            "trial_pipeline_speedup_high": alone_high,
            "part": finding.part,
            **_for_run(finding.for_run),
        }


def _for_run(gain: RunGain | None) -> Row:
    if gain is None:
        return {}
    low, high = gain.ci95 or (None, None)
    return {
        "run_speedup": gain.speedup,
        "run_speedup_low": low,
        "run_speedup_high": high,
        "run_before_s": gain.before_s,
        "run_after_s": gain.after_s,
        "run_basis": gain.basis,
        "run_once_s": gain.once_s,
    }


def _host_rows(session: Session) -> Iterator[Row]:
    for sample in session.host_samples:
        row = sample.model_dump(exclude={"pools_percent"})
        pools = {f"{pool}_cpu_percent_of_a_core": sample.pools_percent.get(pool) for pool in POOLS}
        yield {**row, **pools}
