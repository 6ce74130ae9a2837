"""Sessions with one table whose ways out were timed."""

from __future__ import annotations

from typing import Any

from pipediag.session.model import Session
from pipediag.session.way_times import TableTimes, WayTime, WayTimes
from tests.factories import make_embedding, make_session
from tests.rules.embedding.sessions import make_ids


def make_way_time(**overrides: Any) -> WayTime:
    values: dict[str, Any] = {
        "way": "row-wise update",
        "timed": "step",
        "base_ms": 66.4,
        "ms": 10.3,
        "speedup": 6.43,
        "ci95": (6.31, 6.57),
        "rounds": 10,
    }
    return WayTime(**{**values, **overrides})


def make_table_times(*ways: WayTime, **overrides: Any) -> TableTimes:
    values: dict[str, Any] = {
        "layer": "embedding",
        "variable": None,
        "rows": 1000,
        "timed_rows": 1000,
        "batches": 8,
        "device": "/job:localhost/replica:0/task:0/device:CPU:0",
        "ways": list(ways),
    }
    return TableTimes(**{**values, **overrides})


def timed_session(*ways: WayTime, **table: Any) -> Session:
    """Of Adam's 1,000 rows, which a plan has all ways for."""
    times = WayTimes(budget_s=60.0, took_s=66.0, buckets=10, tables=[make_table_times(*ways)])
    values = {"gradient": "sparse", "temporary_peak_bytes": 512_000, "ids": make_ids(), **table}
    return make_session(embeddings=[make_embedding(**values)], way_times=times)
