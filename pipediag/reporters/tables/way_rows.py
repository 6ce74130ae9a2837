"""Ways out of tables as rows: bytes, and time where it was measured."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.facts.memory_plan import plan_memory
from pipediag.reporters.tables.device_rows import Row
from pipediag.session.memory_plan import TablePlan, WayOut
from pipediag.session.model import Session
from pipediag.session.way_times import WayTime

WAY_COLUMNS = (
    "layer",
    "rows",
    "dim",
    "dtype",
    "way",
    "device_bytes",
    "host_bytes",
    "saved_bytes",
    "exchanged_bytes_per_step",
    "exchanged_missing",
    "hit_percent",
    "timed",
    "timed_rows",
    "as_it_is_ms",
    "this_way_ms",
    "speedup",
    "speedup_low",
    "speedup_high",
    "rounds",
    "time_missing",
)


def way_rows(session: Session) -> Iterator[Row]:
    """One row for each way out of each table."""
    for table in plan_memory(session).tables:
        for way in table.ways:
            yield {
                **{name: getattr(table, name) for name in ("layer", "rows", "dim", "dtype")},
                "way": way.name,
                **_bytes(way),
                **_time(table, way),
            }


def _bytes(way: WayOut) -> Row:
    return {name: getattr(way, name) for name in WAY_COLUMNS if hasattr(way, name)}


def _time(table: TablePlan, way: WayOut) -> Row:
    if table.times is None:
        return {"time_missing": table.times_missing}
    found = next((one for one in table.times.ways if one.way == way.name), None)
    if found is None:
        return {"time_missing": "It was not among the ways that were timed."}
    return {**_measured(found), "timed_rows": table.times.timed_rows if found.timed else None}


def _measured(found: WayTime) -> Row:
    low, high = found.ci95 or (None, None)
    return {
        "timed": found.timed,
        "as_it_is_ms": found.base_ms,
        "this_way_ms": found.ms,
        "speedup": found.speedup,
        "speedup_low": low,
        "speedup_high": high,
        "rounds": found.rounds,
        "time_missing": found.missing,
    }
