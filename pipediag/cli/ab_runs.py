"""The runs that `pipediag ab` makes: each a process and a session of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipediag.cli.fresh_runs import analyze_afresh
from pipediag.comparison.interleaving import End, Ended, Side
from pipediag.interrupts import INTERRUPTED, INTERRUPTS
from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.repeats import without_rows
from pipediag.session.store import load_session

UNFINISHED = "unfinished"
"""Where a run goes that was cut short: it must not be taken for one of its side."""

_STDERR = 2


@dataclass
class Runs:
    """Called for each run; gives its session, or raises `Ended` where there is none to compare."""

    directories: dict[Side, Path]
    output: Path
    call: list[str]
    """Of `analyze`: options, script and the script's arguments."""
    timeout_s: float | None
    """Of each run, seconds."""
    tell: Callable[[str], None]
    status: int = 0
    """What the last run ended with."""

    def __call__(self, side: Side, number: int, left_s: float) -> Session:
        if INTERRUPTS.came:
            raise Ended("interrupted")
        into = self.output / side / f"run-{number}"
        self.tell(f"pipediag: round {number}, {side}, into {into}")
        ours = self.timeout_s is None or left_s < self.timeout_s
        limit = left_s if ours else self.timeout_s
        options = ["--output", str(into.resolve()), "--timeout", str(limit)]
        # Standard output is for the comparison alone.
        self.status = analyze_afresh(
            [*options, *self.call], directory=self.directories[side], stdout=_STDERR
        )
        end = self._end(into, ours=ours)
        if end in ("interrupted", "seconds") and into.exists():
            into.rename(self.output / UNFINISHED)
        if end is not None:
            raise Ended(end)
        return without_rows(load_session(into))

    def _end(self, into: Path, *, ours: bool) -> End | None:
        """Why this run is none to compare; None where it is one."""
        if not (into / SESSION_FILE).exists():
            return "interrupted" if self.status >= 128 or self.status == INTERRUPTED else "failed"
        outcome = load_session(into).script.outcome
        if outcome in ("interrupted", "killed"):
            return "interrupted"
        if outcome == "timed-out" and ours:
            return "seconds"
        return "failed" if self.status else None
