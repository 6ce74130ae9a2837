"""How often pipediag is right on labelled scripts, and how often trials confirm what is not so.

    python -m benchmarks.diagnosis [--budget S] [--rounds N] [--keep DIR] [--table FILE] [NAME...]
    python -m benchmarks.diagnosis --sessions DIR [--table FILE] [NAME...]

Runs `pipediag analyze` on every sample and on every script in benchmarks/scripts, round by round,
and compares the session with the expectation beside the script: bottleneck, operation, line, rules,
and what trials confirm first, or confirm falsely. With `--sessions` it judges the sessions that
`--keep` left, and runs nothing. The exit status is 1 if any run missed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.runs import RunFailedError, analyze, machine_of
from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.store import load_session
from pipediag.session.trials import NO_BUDGET
from tests.samples.expectation import (
    Expectation,
    all_expectations,
    confirmed_rules,
    discrepancies,
    false_confirmations,
    marked_lines,
    where_discrepancies,
)

SCRIPTS = Path(__file__).with_name("scripts")
NOTHING = "-"


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--budget", default=30.0, show_default=True, help="Seconds of trials; 0: none.")
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Keep each run's session.json here.")
@click.option(
    "--sessions",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Judge what --keep left here.",
)
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.argument("names", nargs=-1)
def main(
    budget: float,
    rounds: int,
    keep: Path | None,
    sessions: Path | None,
    table: Path | None,
    names: tuple[str, ...],
) -> None:
    """Run the scripts, print each outcome and the totals."""
    outcomes: list[Outcome] = []
    machines: dict[str, None] = {}
    every = runs(names, budget, rounds, keep) if sessions is None else kept(names, sessions)
    for expected, session in every:
        if isinstance(session, RunFailedError):
            outcomes.append(failed(expected, str(session)))
        else:
            machines[machine_of(session.environment)] = None
            asked = session.trials_missing != NO_BUDGET
            outcomes.append(judge(expected, session, trials=asked))
        say(outcomes[-1])
    for sentence in totals(outcomes):
        click.echo(sentence)
    if table is not None and machines:
        table.write_text(markdown(outcomes, "; ".join(machines) + "."), encoding="utf-8")
    sys.exit(any(outcome.misses for outcome in outcomes))


def runs(
    names: tuple[str, ...], budget_s: float, rounds: int, keep: Path | None
) -> Iterable[tuple[Expectation, Session | RunFailedError]]:
    """Yield a fresh session of each labelled script, round by round, or why there is none."""
    for number in range(1, rounds + 1):
        for expected in labelled(names):
            with tempfile.TemporaryDirectory(prefix="pipediag-diagnosis-") as directory:
                output = Path(directory)
                try:
                    session = analyze(
                        expected.script, output, budget_s, exit_status=expected.exit_status
                    )
                except RunFailedError as error:
                    yield expected, error
                    continue
                if keep is not None:
                    place = keep / expected.name / f"round{number}"
                    place.mkdir(parents=True, exist_ok=True)
                    shutil.copy(output / SESSION_FILE, place)
                yield expected, session


def kept(names: tuple[str, ...], folder: Path) -> Iterable[tuple[Expectation, Session]]:
    """Yield the sessions that earlier runs kept."""
    for expected in labelled(names):
        for path in sorted((folder / expected.name).rglob(SESSION_FILE)):
            yield expected, load_session(path)


def labelled(names: tuple[str, ...] = ()) -> list[Expectation]:
    """Return the labelled scripts that can run here: those named, or all.

    Raises:
        click.UsageError: a name that no script has.
    """
    every = [*all_expectations(), *all_expectations(SCRIPTS)]
    if unknown := set(names) - {expected.name for expected in every}:
        raise click.UsageError(f"no script is called {', '.join(sorted(unknown))}")
    chosen = [expected for expected in every if not names or expected.name in names]
    return [expected for expected in chosen if not expected.missing_modules]


@dataclass(frozen=True)
class Outcome:
    """One run of one script beside its expectation; `None` where nothing is expected."""

    expected: Expectation
    line_right: bool | None
    where_right: bool | None
    confirmed_right: bool | None
    misses: tuple[str, ...]
    """A sentence for each difference from the expectation."""
    bottleneck: str = "none"
    verdict_right: bool = False
    operation: str = NOTHING
    line: str = NOTHING
    where: str = NOTHING
    first_confirmed: str | None = None
    false: tuple[str, ...] = ()
    """Rules that were confirmed although they must not be."""
    tried: int = 0
    """Edits that were measured."""

    @property
    def right_at_first_place(self) -> bool:
        """Return whether verdict, places and the first confirmed finding are as expected."""
        first = self.confirmed_right is not False and self.first_confirmed not in self.false
        placed = self.line_right is not False and self.where_right is not False
        return self.verdict_right and placed and first


def judge(expected: Expectation, session: Session, *, trials: bool) -> Outcome:
    """Compare a session with its expectation; without `trials` nothing need be confirmed."""
    verdict = session.verdict
    first = next(iter(confirmed_rules(session)), None)
    wanted = expected.trials.confirmed
    right = first in wanted if wanted and trials else None
    false = tuple(false_confirmations(expected, session))
    misses = discrepancies(expected, session)
    if right is False:
        misses.append(f"first confirmed is {first}, expected one of {wanted}")
    misses += [f"{rule} was confirmed and must not be" for rule in false]
    operation = session.operation(verdict.op_id)
    in_script = verdict.file is not None and Path(verdict.file).name == expected.script.name
    return Outcome(
        expected,
        line_right=(
            in_script and verdict.line in _lines(expected) if expected.verdict_line else None
        ),
        where_right=not where_discrepancies(expected, session) if expected.where else None,
        confirmed_right=right,
        misses=tuple(misses),
        bottleneck=verdict.bottleneck,
        verdict_right=verdict.bottleneck in expected.bottleneck,
        operation=operation.kind if operation else NOTHING,
        line=str(verdict.line or NOTHING),
        where=verdict.where or NOTHING,
        first_confirmed=first,
        false=false,
        tried=sum(finding.trial.speedup is not None for finding in session.findings),
    )


def failed(expected: Expectation, reason: str) -> Outcome:
    """Return the outcome of a run without a session: all that was expected is missing."""
    return Outcome(
        expected,
        line_right=False if expected.verdict_line else None,
        where_right=False if expected.where else None,
        confirmed_right=False if expected.trials.confirmed else None,
        misses=(reason,),
    )


def say(outcome: Outcome) -> None:
    """Print a line for the run, and one for each miss."""
    expected = outcome.expected
    click.echo(
        f"{'miss' if outcome.misses else 'ok':4} {expected.name}: expected "
        f"{' or '.join(expected.bottleneck)} in line {_expected_line(expected)}, found "
        f"{outcome.bottleneck} by {outcome.operation} in line {outcome.line}; "
        f"confirmed first: {outcome.first_confirmed or 'nothing'} of {outcome.tried} tried"
    )
    for miss in outcome.misses:
        click.echo(f"    {miss}")


def totals(outcomes: Sequence[Outcome]) -> list[str]:
    """Return how many runs were right of how many that could be, one sentence for each count."""

    def right(values: Iterable[bool | None]) -> str:
        known = [value for value in values if value is not None]
        return f"{sum(known)} of {len(known)}"

    false, tried = sum(len(o.false) for o in outcomes), sum(o.tried for o in outcomes)
    return [
        f"Right at first place: {right(o.right_at_first_place for o in outcomes)} runs.",
        f"False confirmations: {false} ({tried} edits were measured).",
        f"Bottleneck right: {right(o.verdict_right for o in outcomes)}; line right: "
        f"{right(o.line_right for o in outcomes)}; part of the run right: "
        f"{right(o.where_right for o in outcomes)}; first confirmed finding right: "
        f"{right(o.confirmed_right for o in outcomes)}.",
        f"As the whole expectation says: {right(not o.misses for o in outcomes)}.",
    ]


def markdown(outcomes: Sequence[Outcome], machine: str) -> str:
    """Return the machine, the totals, and a row for each run."""
    head = ("script", "expected", "found", "expected confirmed", "first confirmed", "right")
    rows = [head, ("---",) * len(head), *map(_row, outcomes)]
    table = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([machine, "", *totals(outcomes), "", *table]) + "\n"


def _row(outcome: Outcome) -> tuple[str, ...]:
    expected, wanted = outcome.expected, outcome.expected.trials
    where = " or ".join(expected.where)
    found = outcome.where if where else NOTHING
    wish = " or ".join(wanted.confirmed) or ("none" if wanted.none else NOTHING)
    return (
        f"`{expected.name}`",
        _place(" or ".join(expected.bottleneck), _expected_line(expected), where or NOTHING),
        _place(f"{outcome.bottleneck} by {outcome.operation}", outcome.line, found),
        wish,
        outcome.first_confirmed or NOTHING,
        "yes" if outcome.right_at_first_place else "no",
    )


def _place(bottleneck: str, line: str, where: str) -> str:
    place = bottleneck if line == NOTHING else f"{bottleneck}, line {line}"
    return place if where == NOTHING else f"{place}; most of the run: {where}"


def _lines(expected: Expectation) -> set[int]:
    marker = expected.verdict_line
    return set() if marker is None else marked_lines(expected.script)[marker]


def _expected_line(expected: Expectation) -> str:
    return ", ".join(map(str, sorted(_lines(expected)))) or NOTHING


if __name__ == "__main__":
    main()
