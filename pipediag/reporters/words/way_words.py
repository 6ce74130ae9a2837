"""What ways out of a table cost in time, in words, for the terminal and the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from pipediag.reporters.words.quantities import (
    NO_BREAK,
    duration,
    measured,
    number,
    speedup,
    speedup_interval,
)
from pipediag.session.memory_plan import MemoryPlan, TablePlan
from pipediag.session.way_times import TableTimes, WayTime

_CAVEATS = {
    "8-bit rows": "It can't be trained: looked up alone.",
    "memory-mapped and frozen": "Looked up alone by NumPy, of a file that the system has in "
    "memory. What a disk takes, and a pipeline to call it, was not timed; there it runs beside the "
    "step.",
}
_WITHOUT_THE_REST = (
    "A step is look-up, gradient and update, without the rest of the model. Above 1 the way is the "
    "faster one."
)


@dataclass(frozen=True)
class TimedRow:
    """A way that was timed, cell by cell."""

    way: str
    timed: str
    as_it_is: str
    this_way: str
    ratio: str


def timed_rows(times: TableTimes) -> list[TimedRow]:
    """Those that have a ratio."""
    return [
        TimedRow(
            way=one.way,
            timed=one.timed or "",
            as_it_is=duration(one.base_ms),
            this_way=duration(one.ms),
            ratio=f"{speedup(one.speedup)} {speedup_interval(one.ci95)}",
        )
        for one in times.ways
        if one.speedup is not None
    ]


def in_a_line(times: TableTimes) -> str:
    """All ratios of a table, steps first and then the largest, or why it has none."""
    ratios = sorted(
        (one for one in times.ways if one.speedup is not None),
        key=lambda one: (one.timed != "step", -(one.speedup or 0.0)),
    )
    told = (f"{_what(one)} {speedup(one.speedup)} {speedup_interval(one.ci95)}" for one in ratios)
    return ", ".join(told) or times.missing or "none of its ways was timed"


def _what(one: WayTime) -> str:
    return one.way if one.timed == "step" else f"{one.way} (look-up alone, not trained)"


def of_fewer_rows(times: TableTimes) -> str:
    """`, 500 of 1,000 rows` where the timed table is a smaller one; empty where it is not."""
    if times.timed_rows is None or times.timed_rows >= times.rows:
        return ""
    return f", {number(times.timed_rows)} of {number(times.rows)} rows"


def how(times: TableTimes) -> str:
    """What was timed, as a phrase."""
    where = f" on {times.device.rpartition('device:')[2]}" if times.device else ""
    batches = "one batch" if times.batches == 1 else f"{times.batches} batches in turn"
    return f"by itself{where}, {number(times.timed_rows)} rows, by the ids of {batches}"


def remarks(timed: list[TableTimes]) -> list[str]:
    """In what tables are not those of the run, what rows do not say, and why ways have no ratio.

    Each once, with the tables that it is of where it is not of all.
    """
    of: dict[str, list[str]] = defaultdict(list)
    for times in timed:
        for said in _remarks(times):
            of[said].append(times.layer)
    return [
        said if len(layers) == len(timed) else f"{', '.join(layers)}: {said}"
        for said, layers in of.items()
    ]


def _remarks(times: TableTimes) -> list[str]:
    with_ratio = {one.way for one in times.ways if one.speedup is not None}
    caveats = [f"{way}: {text}" for way, text in _CAVEATS.items() if way in with_ratio]
    explained = [_WITHOUT_THE_REST] if with_ratio else []
    return [*explained, *times.notes, *caveats, *_lacks(times.ways)]


def _lacks(ways: list[WayTime]) -> list[str]:
    """Each reason once, with the ways that it is of."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for one in ways:
        if one.missing is not None:
            by_reason[one.missing].append(one.way)
    return [f"Not timed: {', '.join(names)}. {reason}" for reason, names in by_reason.items()]


def exchange(plan: MemoryPlan, shown: list[TablePlan]) -> list[str]:
    """What is not known of what crosses between devices, or by which rate it was reckoned."""
    said = [one for table in shown for one in _not_known(table)]
    known = [
        one for table in shown for one in table.ways if one.exchanged_bytes_per_step is not None
    ]
    if known and plan.link_bytes_per_s is not None:
        rate = f"{measured(plan.link_bytes_per_s / 1e9)}{NO_BREAK}GB/s"
        said.append(f"The link's time is the least that {rate}, as given, allows.")
    elif known:
        reason = known[0].link_missing
        said.append(f"How long the exchange of a step takes is not known: {reason}")
    return said


def _not_known(table: TablePlan) -> Iterator[str]:
    """Each reason once, with the ways that it is of: what one lacks, another may have."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for one in table.ways:
        if one.exchanged_missing is not None:
            by_reason[one.exchanged_missing].append(one.name)
    for reason, names in by_reason.items():
        ways = ", ".join(names)
        yield f"What {ways} would exchange for {table.layer} in a step is not known: {reason}"
