"""Configured limits on what was measured; the whole interval of a value decides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median, stdev

from pipediag.comparison.quantities import (
    INPUT,
    OVERHEAD,
    Measured,
    Unit,
    Value,
    part_percent,
    step_percent,
)
from pipediag.estimates import student_quantile
from pipediag.facts.names import RUN_PART
from pipediag.facts.run import costliest_row
from pipediag.gate.config import GateConfig
from pipediag.gate.result import UNIT_WORDS, Check, CheckOutcome, number
from pipediag.session.findings import Finding
from pipediag.session.model import Session

Place = tuple[str | None, int | None]

MEDIAN_BY_MEAN = math.sqrt(math.pi / 2.0)
"""Standard error of a median over that of a mean, for many normal values; for few it is less."""

_MORE_RUNS = "More runs (--repeats) make the interval narrower."
_MORE_STEPS = "More steps (--steps) make the interval narrower."
_MORE_EPOCHS = "More epochs, with `--run-to-end`, make the interval narrower."
_MORE_TRIALS = "A longer `--budget` makes the interval narrower."
_NOT_TRIED = "no trials were made. Leave out `--budget 0`, or give them more time."


@dataclass(frozen=True)
class Limit:
    """A limit that the configuration sets."""

    name: str
    """The key in the configuration."""
    label: str
    most: float
    value: Value
    place: Place = (None, None)
    unit: Unit = "percent"
    narrower: str = _MORE_STEPS
    """A sentence on how to narrow an interval that contains the limit."""
    diff: str | None = None
    """A change of the script that keeps the limit."""


def limit_checks(runs: Sequence[Session], config: GateConfig) -> list[Check]:
    """Return one check for each configured limit, over all runs together."""
    return [_check(one, of_runs(list(map(one.value, runs)))) for one in _limits(runs, config)]


def _limits(runs: Sequence[Session], config: GateConfig) -> Iterator[Limit]:
    first = runs[0]
    named = (first.verdict.file, first.verdict.line)
    if (most := config.max_input_wait_percent) is not None:
        share = partial(step_percent, classes=INPUT)
        yield Limit("max-input-wait-percent", "Input wait", most, share, named)
    if (most := config.max_overhead_percent) is not None:
        label = "Overhead (dispatch, Python, compilation, waiting for the device)"
        share = partial(step_percent, classes=OVERHEAD)
        yield Limit("max-overhead-percent", label, most, share, named)
    for part in RUN_PART:
        if (most := config.max_run_percent.get(part)) is not None:
            name = f"max-run-percent.{part.replace('_', '-')}"
            row = costliest_row(first.run, part) if first.run is not None else None
            place = (row.file, row.line) if row is not None else (None, None)
            share = partial(part_percent, part=part)
            yield Limit(name, RUN_PART[part], most, share, place, narrower=_MORE_EPOCHS)
    if (most := config.max_confirmed_speedup_left) is not None:
        found = _confirmed(first)
        rules = ", ".join(dict.fromkeys(one.rule for one in found))
        yield Limit(
            "max-confirmed-speedup-left",
            "Confirmed speed-up left" + (f" by {rules}" if rules else ""),
            most,
            _speedup_left,
            (found[0].file, found[0].line) if found else (None, None),
            "ratio",
            _MORE_TRIALS,
            next((one.patch.diff for one in runs if one.patch and one.patch.diff), None),
        )


def of_runs(found: Sequence[Measured | str]) -> Measured | str:
    """Return the median of several runs, with an interval that covers their spread.

    Steps within one run are not independent: memory layout, page cache and other programs affect
    all of them. So the interval is Student's over the runs, stretched as that of a median is wider
    than that of a mean, and never narrower than the runs' own. If one run lacks the value, the
    reason is returned.
    """
    missing = next((one for one in found if isinstance(one, str)), None)
    if missing is not None:
        return missing
    runs = [one for one in found if isinstance(one, Measured)]
    if len(runs) == 1:
        return runs[0]
    values = tuple(one.value for one in runs)
    middle = median(values)
    reach = (
        student_quantile(0.975, len(values) - 1)
        * MEDIAN_BY_MEAN
        * stdev(values)
        / math.sqrt(len(values))
    )
    low = min(middle - reach, median(one.interval[0] for one in runs))
    high = max(middle + reach, median(one.interval[1] for one in runs))
    return replace(runs[0], value=middle, interval=(low, high), runs=values)


def _check(limit: Limit, measured: Measured | str) -> Check:
    if isinstance(measured, str):
        sentence = f"{limit.label} was not measured: {measured}"
        outcome: CheckOutcome = "inconclusive"
        return Check(limit.name, outcome, "error", sentence, limit=limit.most, unit=limit.unit)
    low, high = measured.interval
    # No value is below 0, and no share above 100 %.
    interval = max(0.0, low), min(100.0, high) if limit.unit == "percent" else high
    outcome, ending = _compare(interval, limit, _MORE_RUNS if measured.runs else limit.narrower)
    return Check(
        name=limit.name,
        outcome=outcome,
        severity="error",
        sentence=f"{limit.label}: {_in_words(measured, interval, limit.unit)}, {ending}",
        value=measured.value,
        interval=interval,
        limit=limit.most,
        unit=limit.unit,
        file=limit.place[0],
        line=limit.place[1],
        diff=limit.diff if outcome == "fail" else None,
    )


def _in_words(measured: Measured, interval: tuple[float, float], unit: Unit) -> str:
    word = UNIT_WORDS[unit]
    low, high = (number(end, unit) for end in interval)
    of = f" of {measured.of}" if measured.of else ""
    runs = ", ".join(number(one, unit) for one in measured.runs)
    each = f"median of {runs}; " if runs else ""
    return f"{number(measured.value, unit)}{word}{of} ({each}95 % interval {low} to {high}{word})"


def _compare(
    interval: tuple[float, float], limit: Limit, narrower: str
) -> tuple[CheckOutcome, str]:
    low, high = interval
    most = f"{limit.most:g}{UNIT_WORDS[limit.unit]}"
    if low > limit.most:
        return "fail", f"over the limit of {most}."
    if high <= limit.most:
        return "pass", f"within the limit of {most}."
    return "inconclusive", (
        f"and the limit of {most} lies inside the interval: too close to call. {narrower}"
    )


def _speedup_left(session: Session) -> Measured | str:
    """Return the gain of all edits together; else the largest of one; 1 if none was confirmed."""
    combined = session.combined
    if combined is not None and combined.speedup is not None and combined.ci95 is not None:
        return Measured(combined.speedup, combined.ci95)
    gains = [
        (one.trial.speedup or 1.0, one.trial.ci95 or (1.0, 1.0)) for one in _confirmed(session)
    ]
    if gains:
        return Measured(*max(gains))
    to_try = any(one.status == "fail" and one.edit is not None for one in session.findings)
    if session.trials is None and to_try:
        return session.trials_missing or _NOT_TRIED
    return Measured(1.0, (1.0, 1.0))


def _confirmed(session: Session) -> list[Finding]:
    return [
        one
        for one in session.findings
        if one.trial.state == "confirmed"
        and one.trial.speedup is not None
        and not one.about_results
    ]
