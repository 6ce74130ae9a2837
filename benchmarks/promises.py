"""How often the patches that `pipediag fix` writes obtain what was promised for the whole run.

    python -m benchmarks.promises [--scripts N] [--rounds N] [--budget S] [--table FILE] [NAME...]

Draws at random, the same ones each time, of the labelled scripts on which an edit is to be
confirmed. Runs `pipediag analyze` once, then script and patched copy natively, to their ends, in
turn, as `pipediag fix --verify` does. What was made is kept, and a later call continues from there.
A promise is kept where its interval and that of the ratio of wall times overlap, or where more is
obtained. Scripts that take too long for that are left out.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.diagnosis import labelled
from benchmarks.runs import RunFailedError, analyze, machine_of
from pipediag.errors import PipediagError
from pipediag.patching.making import patched_files
from pipediag.runner.native_runs import (
    Obtained,
    TooLongError,
    kept,
    obtained,
    promised_of_whole,
    versions,
)
from pipediag.session.files import write_text
from pipediag.session.model import Session
from tests.samples.expectation import Expectation

KEPT = Path(__file__).with_name("results") / "promises.jsonl"
SEED = 11
LIMIT_S = 90.0
"""Seconds that a script may take by itself, as the session has it or as it turns out."""
GOAL = 0.8

NOTHING = "nothing confirmed"
TOO_LONG = "takes too long"


@dataclass(frozen=True)
class Row:
    """The patch of one script and what it obtained."""

    script: str
    rules: list[str]
    """Rules of the confirmed edits that the patch holds."""
    outcome: str
    """`kept`, `more` or `less`; else why there is nothing to compare."""
    promised: list[float]
    """The speed-up of the run, and its interval; empty without a promise."""
    obtained: list[float]
    """The ratio of the wall times of script and patched copy, and its interval."""
    machine: str

    @property
    def good(self) -> bool:
        return self.outcome in ("kept", "more")

    @property
    def counts(self) -> bool:
        """Return whether there was something to promise, and the time to compare it."""
        return self.outcome not in (NOTHING, TOO_LONG)


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--scripts", default=20, show_default=True, help="So many of them.")
@click.option("--rounds", type=click.IntRange(min=2), default=3, show_default=True)
@click.option("--budget", type=click.FloatRange(min=1), default=30.0, show_default=True)
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.option("--keep", type=click.Path(path_type=Path), default=KEPT, help="What was made.")
@click.option("--reports", type=click.Path(path_type=Path), help="Keep the reports here.")
@click.argument("names", nargs=-1)
def main(
    scripts: int,
    rounds: int,
    budget: float,
    table: Path | None,
    keep: Path,
    reports: Path | None,
    names: tuple[str, ...],
) -> None:
    """Continue from the rows that were kept, and print them all."""
    made = keep.read_text(encoding="utf-8").splitlines() if keep.exists() else []
    rows = [Row(**json.loads(row)) for row in made]
    with tempfile.TemporaryDirectory(prefix="pipediag-promises-") as nowhere:
        for expected in drawn(names):
            if not names and sum(row.counts for row in rows) >= scripts:
                break
            if expected.name in {row.script for row in rows}:
                continue
            rows.append(row_of(expected, rounds, budget, (reports or Path(nowhere))))
            write_text(keep, "".join(f"{json.dumps(asdict(row))}\n" for row in rows))
            script, edits, promise, obtained, outcome = _cells(rows[-1])
            click.echo(f"{script}: {edits} promised {promise}, obtained {obtained}: {outcome}")
    click.echo(summary(rows))
    if table is not None:
        table.write_text(markdown(rows), encoding="utf-8")


def drawn(names: tuple[str, ...]) -> list[Expectation]:
    """Return the named scripts, or those on which an edit is to be confirmed, shuffled."""
    if names:
        return labelled(names)
    fitting = [one for one in labelled() if one.trials.confirmed and one.exit_status == (0,)]
    return random.Random(SEED).sample(fitting, len(fitting))


def row_of(expected: Expectation, rounds: int, budget_s: float, reports: Path) -> Row:
    """Analyse one script, and run it and its patched copy natively."""
    row = Row(expected.name, [], NOTHING, [], [], "")
    try:
        session = analyze(expected.script, reports / expected.name, budget_s)
    except RunFailedError as error:
        return replace(row, outcome=str(error))
    patch = session.patch
    confirmed = [f.rule for f in session.findings if f.edit and f.trial.state == "confirmed"]
    row = replace(row, machine=machine_of(session.environment), rules=confirmed)
    if patch is None or patch.diff is None:
        return replace(row, outcome="no patch" if confirmed else NOTHING)
    rules = [f.rule for f in session.findings if f.edit and f.edit.id in patch.edits]
    row = replace(row, rules=rules)
    if session.run is not None and session.run.whole_s > LIMIT_S:
        return replace(row, outcome=TOO_LONG)
    files = patched_files(session, patch)
    try:
        with versions(session, files) as both:
            native = obtained(both, rounds, timeout_s=LIMIT_S)
    except PipediagError as error:
        return replace(row, outcome=TOO_LONG if isinstance(error, TooLongError) else str(error))
    return compared(session, native, row)


def compared(session: Session, native: Obtained, row: Row) -> Row:
    """Enter what was promised and what was obtained."""
    found, promise = native.gain, promised_of_whole(session, native.script_s)
    row = replace(row, obtained=[found.value, found.low, found.high])
    if promise is None:
        return replace(row, outcome="no promise")
    outcome = "kept" if kept(promise, found) else "less"
    if outcome == "less" and found.low > promise.speedup:
        outcome = "more"
    figures = [promise.speedup, *(promise.ci95 or (promise.speedup, promise.speedup))]
    return replace(row, outcome=outcome, promised=figures)


def summary(rows: Sequence[Row]) -> str:
    """Return how many promises were kept, in one sentence."""
    asked = [row for row in rows if row.counts]
    good = sum(row.good for row in asked)
    others = Counter(row.outcome.partition(":")[0] for row in asked if not row.good)
    rest = ", ".join(f"{count} {outcome}" for outcome, count in others.most_common())
    share = f" ({100.0 * good / len(asked):.0f} %)" if asked else ""
    return (
        f"Of {len(asked)} scripts on which edits were confirmed, {good}{share} have a patch that "
        f"applies, runs and obtains what was promised; the goal is {100 * GOAL:.0f} %."
        f"{f' Others: {rest}.' if rest else ''}"
    )


def markdown(rows: Sequence[Row]) -> str:
    """Return the machine, the summary, and a row for each script."""
    head = "| script | edits | promised | obtained | outcome |"
    machines = "; ".join(dict.fromkeys(row.machine for row in rows if row.machine))
    table = ["| " + " | ".join(_cells(row)) + " |" for row in rows]
    called = "`python -m benchmarks.promises`, on " + machines
    lines = ["# Promises of patches", "", f"{called}.", "", summary(rows), ""]
    return "\n".join([*lines, head, "|---" * 5 + "|", *table, ""])


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    edits = ", ".join(f"`{rule}`" for rule in row.rules) or "-"
    outcome = row.outcome.replace("|", "/").replace("\n", " ")[:120]
    return f"`{row.script}`", edits, _figure(row.promised), _figure(row.obtained), outcome


def _figure(figures: Sequence[float]) -> str:
    if not figures:
        return "-"
    value, low, high = figures
    return f"{value:.2f}x [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
