"""What rounds of a table as it is and one way out of it come to."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from pipediag.measures.missing import Missing
from pipediag.session.embeddings import Embedding
from pipediag.session.table_bench import NotTimed, Placed, Result, Round
from pipediag.session.way_times import TableTimes, WayTime
from pipediag.trials.statistics import FEWEST_ROUNDS, estimate
from pipediag.trials.way_plan import Wanted
from pipediag.vocabulary import TimedPart, WayName

MORE_TIME = "Give more with `--time-ways`."
MORE_TIME_OF_BOTH = "Give more with `--time-ways` and `--timeout`."


def not_timed(table: Embedding, reason: str) -> TableTimes:
    """A table of which nothing was timed."""
    return TableTimes(layer=table.layer, variable=table.variable, rows=table.rows, missing=reason)


def table_times(
    table: Embedding,
    asked: Wanted | Missing,
    results: Sequence[Result],
    ended: str,
    more_time: str = MORE_TIME,
) -> TableTimes:
    """What was told of a table.

    Args:
        table: of the run.
        asked: which of its ways were to be timed.
        results: all that the process told of it.
        ended: how that process ended, for what it never told of.
        more_time: what gives it more, for what it told too little of.
    """
    if isinstance(asked, Missing):
        return not_timed(table, asked.reason)
    placed = next((one for one in results if isinstance(one, Placed)), None)
    none = next((one for one in results if isinstance(one, NotTimed) and one.way is None), None)
    if placed is None or none is not None:
        return not_timed(table, none.reason if none else ended)
    bench = asked.bench
    reasons = {one.way: one.reason for one in results if isinstance(one, NotTimed) and one.way}
    parts: list[tuple[TimedPart, list[WayName]]] = [
        ("step", bench.step_ways),
        ("look-up", bench.lookup_ways),
    ]
    ways = [
        *(
            _way(way, timed, _rounds(results, way), reasons.get(way), ended, more_time)
            for timed, of_part in parts
            for way in of_part
        ),
        *(WayTime(way=way, missing=reason) for way, reason in asked.not_timed.items()),
    ]
    return TableTimes(
        layer=table.layer,
        variable=table.variable,
        rows=table.rows,
        timed_rows=bench.rows,
        batches=placed.batches,
        device=placed.device,
        ways=ways,
        notes=asked.notes,
    )


def _rounds(results: Sequence[Result], way: WayName) -> list[Round]:
    return [one for one in results if isinstance(one, Round) and one.way == way]


def _way(
    way: WayName,
    timed: TimedPart,
    rounds: list[Round],
    reason: str | None,
    ended: str,
    more_time: str,
) -> WayTime:
    if reason is not None:
        return WayTime(way=way, timed=timed, missing=reason)
    if not rounds:
        return WayTime(way=way, timed=timed, missing=ended)
    if len(rounds) < FEWEST_ROUNDS:
        reason = (
            f"The time was up after {len(rounds)} of at least {FEWEST_ROUNDS} rounds. {more_time}"
        )
        return WayTime(way=way, timed=timed, rounds=len(rounds), missing=reason)
    found = estimate([one.base_ms / one.ms for one in rounds])
    return WayTime(
        way=way,
        timed=timed,
        base_ms=median(one.base_ms for one in rounds),
        ms=median(one.ms for one in rounds),
        speedup=round(found.value, 4),
        ci95=found.interval,
        rounds=found.rounds,
    )
