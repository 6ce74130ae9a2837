"""Hand-made summaries of profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pipediag.trace.classes import STEP_CLASSES
from pipediag.trace.pipeline import IteratorActivity
from pipediag.trace.steps import StepSplit, StepWindows
from pipediag.trace.summary import TraceSummary


def make_split(steps: int = 10, **ms: float) -> StepSplit:
    """Equal steps, with so many milliseconds in each named class."""
    row = np.array([round(ms.get(name, 0.0) * 1e6) for name in STEP_CLASSES])
    ns = np.tile(row, (steps, 1))
    starts = np.arange(steps) * row.sum()
    windows = np.column_stack((starts, starts + row.sum()))
    return StepSplit(
        StepWindows(windows, tuple(range(steps)), "markers"),
        ns,
        ns[:, STEP_CLASSES.index("input_wait")],
    )


def make_activity(path: str, *names: str, **overrides: Any) -> IteratorActivity:
    values: dict[str, Any] = {
        "path": path,
        "kind": path.rpartition("::")[2],
        "names": names,
        "asynchronous": False,
        "calls": 10,
        "total_ns": 0,
        "self_ns": 0,
        "wait_ns": None,
        "parallelism": None,
        "autotune": None,
        "buffer_size": None,
        "buffered_elements": None,
        "batch_size": None,
        "element_bytes": None,
    }
    return IteratorActivity(**{**values, **overrides})


def make_trace(*iterators: IteratorActivity, **overrides: Any) -> TraceSummary:
    values: dict[str, Any] = {
        "path": Path("trace"),
        "window_ns": (0, 100_000_000),
        "steps": make_split(input_wait=7.0, device_compute=2.0, dispatch=1.0),
        "iterators": iterators,
        "devices": (),
        "get_next_calls": 10,
        "accelerated": False,
    }
    return TraceSummary(**{**values, **overrides})
