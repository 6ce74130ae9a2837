"""Loops, windows and the parts of the mean step as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.reporters.tables.device_rows import Row
from pipediag.session.model import Session

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
