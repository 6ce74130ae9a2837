"""What was measured twice, held against itself: where the two differ, a reader should know."""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.reporters.words.phases import TOLERANCE
from pipediag.reporters.words.quantities import milliseconds, percent, seconds
from pipediag.session.model import Session


@dataclass(frozen=True)
class SelfCheck:
    """One pair of figures that should be the same."""

    title: str
    here: str
    """`19.0 s: steps times their mean, waits and epochs' ends`; empty where it was not measured."""
    there: str
    off_percent: float | None
    means: str
    """What a deviation says, or why there is nothing to compare."""

    @property
    def off(self) -> str:
        """`+4.1 %`: by how much the second is more."""
        if self.off_percent is None:
            return percent(None)
        return f"{'+' if round(self.off_percent, 1) > 0 else ''}{percent(self.off_percent)}"

    @property
    def word(self) -> str:
        """`agree`, `differ`, `not compared`."""
        if self.off_percent is None:
            return "not compared"
        return "differ" if abs(self.off_percent) > 100 * TOLERANCE else "agree"


def self_checks(session: Session) -> list[SelfCheck]:
    """The step against the loop, the trials' base against the baseline, the ledger against the
    clock; none where no step was measured."""
    if session.steps is None:
        return []
    return [_step_and_loop(session), _base_and_baseline(session), _ledger_and_clock(session)]


def _step_and_loop(session: Session) -> SelfCheck:
    title = "The step against the loop"
    loop = session.diagnosed_loop()
    time = loop.time if loop is not None else None
    if time is None or not time.total_s:
        reason = loop.time_missing if loop is not None else None
        return _not_compared(title, reason)
    explained = time.total_s - time.unexplained_s
    return SelfCheck(
        title,
        f"{seconds(explained)} by the steps' mean, waits and epochs' ends",
        f"{seconds(time.total_s)} in the loop",
        _off(explained, time.total_s),
        "If the loop takes more, some of its steps took longer than those that were measured, or "
        "something lies between steps that no measured step had.",
    )


def _base_and_baseline(session: Session) -> SelfCheck:
    title = "The trials' base against the baseline"
    run, steps = session.trials, session.steps
    if run is None or steps is None:
        return _not_compared(title, session.trials_missing)
    if run.consumer != "training":
        return _not_compared(title, "The trials ran the pipeline alone, which has no such step.")
    if run.base_step_ms is None:
        return _not_compared(title, None)
    return SelfCheck(
        title,
        f"{milliseconds(steps.mean_ms)} a step in the baseline",
        f"{milliseconds(run.base_step_ms)} a step in the trials",
        _off(steps.mean_ms, run.base_step_ms),
        "If they differ, the steps or the machine changed in between. A trial's ratio holds, as "
        "base and change alternated; what it comes to for the run is then less certain.",
    )


def _ledger_and_clock(session: Session) -> SelfCheck:
    title = "The ledger against the clock"
    run = session.run
    if run is None or session.wall_s <= 0:
        return _not_compared(title, session.run_missing)
    told = run.total_s + run.pipediag_s
    return SelfCheck(
        title,
        f"{seconds(told)} in the ledger and in pipediag itself",
        f"{seconds(session.wall_s)} from the script's start to its end",
        _off(told, session.wall_s),
        "If the clock says more, the process ran for a time that no part of the ledger has: "
        "usually its last moments.",
    )


def _not_compared(title: str, reason: str | None) -> SelfCheck:
    return SelfCheck(title, "", "", None, reason or "One of the two was not measured.")


def _off(first: float, second: float) -> float | None:
    return 100.0 * (second / first - 1.0) if first > 0 else None
