"""The comparison of ledgers with stamps, for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.ledger_comparison import (
    PART_GOAL,
    TOTAL_GOAL,
    Judged,
    Percents,
    Round,
    medians,
    worst,
)
from pipediag.vocabulary import RUN_PARTS

_COLUMNS = (
    "script",
    "native",
    "same run, worst part",
    "same run, total",
    "native run, worst part",
    "stopped, scope",
    "stopped, total",
    "stopped, worst part",
)


def markdown(every: Sequence[Judged], machine: str) -> str:
    """The machine, the summary, a row a script, and all parts of all scripts."""
    rows = [_row([f"`{one.script}`", *cells(one)]) for one in every]
    head = [_row(_COLUMNS), "|" + "---|" * len(_COLUMNS)]
    parts = ["", *_parts_head(), *(line for one in every for line in _parts_rows(one))]
    return "\n".join([machine, "", *summary(every), "", *head, *rows, *parts]) + "\n"


def cells(one: Judged) -> list[str]:
    """Seconds of the native run, and errors in percent of the run."""
    native = [each.native.seconds for each in one.rounds if each.native is not None]
    return [
        f"{median(native):.1f} s" if native else "-",
        _worst(one.same_run),
        _total(one.same_total_error),
        _worst(one.against_native),
        one.scope,
        _total(one.total_error),
        _worst(one.stopped_parts),
    ]


def line(one: Judged) -> str:
    """One script for the terminal."""
    what = dict(zip(_COLUMNS[1:], cells(one), strict=True))
    verdict = "miss" if one.misses else "ok"
    return f"{verdict:4} {one.script}: " + "; ".join(
        f"{key} {value}" for key, value in what.items()
    )


def summary(every: Sequence[Judged]) -> list[str]:
    """How many scripts meet each goal, one sentence each."""
    return [
        _sentence("of the same run's stamps", [one.same_run for one in every]),
        _sentence("of the native run", [one.against_native for one in every]),
        _totals_within("same run, carried on", [one.same_total_error for one in every]),
        _totals_within("native run, where it was stopped", [one.total_error for one in every]),
        _sentence("of the native run where the run was stopped", [o.stopped_parts for o in every]),
    ]


def _sentence(what: str, errors: Sequence[Percents]) -> str:
    within = [abs(found[1]) <= PART_GOAL for one in errors if (found := worst(one)) is not None]
    return f"All parts within {PART_GOAL:g} % {what}: {sum(within)} of {len(within)} scripts."


def _totals_within(what: str, errors: Sequence[float | None]) -> str:
    totals = [error for error in errors if error is not None]
    return (
        f"Projected total within {TOTAL_GOAL:g} % of the {what}: "
        f"{sum(abs(total) <= TOTAL_GOAL for total in totals)} of {len(totals)} scripts of which "
        "the planned end is known."
    )


def _total(error: float | None) -> str:
    return "-" if error is None else f"{error:+.1f} %"


def _worst(errors: Percents) -> str:
    found = worst(errors)
    return "-" if found is None else f"{found[0]} {found[1]:+.1f} %"


_SEEN: dict[str, Callable[[Round], Percents]] = {
    "whole run: its own stamps": lambda one: one.ended.stamps,
    "whole run: ledger": lambda one: one.ended.ledger,
    "after start-up: native stamps": lambda one: one.native.parts if one.native else {},
    "after start-up: ledger": lambda one: one.ended.ledger_after_start,
    "stopped: native stamps": lambda one: one.stopped.native if one.stopped else {},
    "stopped: ledger": lambda one: one.stopped.ledger if one.stopped else {},
}


def _parts_head() -> list[str]:
    return [_row(["script", "percent by", *RUN_PARTS]), "|" + "---|" * (len(RUN_PARTS) + 2)]


def _parts_rows(judged: Judged) -> list[str]:
    rows = []
    for name, of in _SEEN.items():
        parts = medians(of(one) for one in judged.rounds)
        if not parts:
            continue
        values = [f"{parts[part]:.1f}" if part in parts else "-" for part in RUN_PARTS]
        rows.append(_row([f"`{judged.script}`", name, *values]))
    return rows


def _row(values: Sequence[str]) -> str:
    return "| " + " | ".join(values) + " |"
