"""How often pipediag is right on labelled scripts, and how often trials confirm what is not so.

    python -m benchmarks.diagnosis [--budget S] [--rounds N] [--keep DIR] [NAME...]

Runs `pipediag analyze` on every sample and on every script in benchmarks/scripts, round by round,
and compares the session with the expectation beside the script: bottleneck, operation, line, rules,
and what trials confirm first, or confirm falsely. The exit status is 1 if any run missed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.runs import RunFailedError, analyze
from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.trials import NO_BUDGET
from tests.samples.expectation import (
    Expectation,
    all_expectations,
    confirmed_rules,
    discrepancies,
    false_confirmations,
    where_discrepancies,
)

SCRIPTS = Path(__file__).with_name("scripts")


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--budget", default=30.0, show_default=True, help="Seconds of trials; 0: none.")
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Keep each run's session.json here.")
@click.argument("names", nargs=-1)
def main(budget: float, rounds: int, keep: Path | None, names: tuple[str, ...]) -> None:
    """Run the scripts, print each outcome and the totals."""
    outcomes: list[Outcome] = []
    for number in range(1, rounds + 1):
        for expected in labelled(names):
            place = keep and keep / expected.name / f"round{number}"
            outcomes.append(outcome_of(expected, budget, place))
            click.echo(outcomes[-1].line)
            for miss in outcomes[-1].misses:
                click.echo(f"    {miss}")
    for sentence in totals(outcomes):
        click.echo(sentence)
    sys.exit(any(outcome.misses for outcome in outcomes))


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


def outcome_of(expected: Expectation, budget_s: float, place: Path | None) -> Outcome:
    """Run one script and judge its session, which is kept in `place`."""
    with tempfile.TemporaryDirectory(prefix="pipediag-diagnosis-") as directory:
        output = Path(directory)
        try:
            session = analyze(expected.script, output, budget_s, exit_status=expected.exit_status)
        except RunFailedError as error:
            # Without a session all that was expected is missing.
            return Outcome(
                expected,
                line_right=False if expected.verdict.line else None,
                where_right=False if expected.verdict.where else None,
                confirmed_right=False if expected.trials.confirmed else None,
                misses=(str(error),),
            )
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(output / SESSION_FILE, place)
    return judge(expected, session, trials=session.trials_missing != NO_BUDGET)


@dataclass(frozen=True)
class Outcome:
    """One run of one script beside its expectation; `None` where nothing is expected."""

    expected: Expectation
    line_right: bool | None
    where_right: bool | None
    confirmed_right: bool | None
    misses: tuple[str, ...]
    """A sentence for each difference from the expectation."""
    verdict_right: bool = False
    found: str = "nothing"
    """The verdict, and what was confirmed first, in words."""
    false: tuple[str, ...] = ()
    """Rules that were confirmed although they must not be."""
    right_at_first_place: bool = False
    """Verdict, places and the first confirmed finding are as expected."""
    tried: int = 0
    """Edits that were measured."""

    @property
    def line(self) -> str:
        """Return the outcome in a line."""
        verdict = self.expected.verdict
        wanted = " or ".join(verdict.bottleneck)
        if verdict.line is not None:
            lines = sorted(self.expected.marks[verdict.line])
            wanted += f" in line {', '.join(map(str, lines))}"
        word = "miss" if self.misses else "ok"
        return f"{word:4} {self.expected.name}: expected {wanted}, found {self.found}"


def judge(expected: Expectation, session: Session, *, trials: bool) -> Outcome:
    """Compare a session with its expectation; without `trials` nothing need be confirmed."""
    verdict = session.verdict
    first = next(iter(confirmed_rules(session)), None)
    wanted = expected.trials.confirmed
    confirmed_right = first in wanted if wanted and trials else None
    false = tuple(false_confirmations(expected, session))
    misses = discrepancies(expected, session)
    if confirmed_right is False:
        misses.append(f"first confirmed is {first}, expected one of {wanted}")
    misses += [f"{rule} was confirmed and must not be" for rule in false]
    line_right = where_right = None
    if expected.verdict.line is not None:
        line_right = expected.is_marked(expected.verdict.line, verdict.file, verdict.line)
    if expected.verdict.where:
        where_right = not where_discrepancies(expected, session)
    verdict_right = verdict.bottleneck in expected.verdict.bottleneck
    operation = session.operation(verdict.op_id)
    tried = sum(finding.trial.speedup is not None for finding in session.findings)
    placed = False not in (line_right, where_right)
    first_right = confirmed_right is not False and first not in false
    return Outcome(
        expected,
        line_right=line_right,
        where_right=where_right,
        confirmed_right=confirmed_right,
        misses=tuple(misses),
        verdict_right=verdict_right,
        found=f"{verdict.bottleneck} by {operation.kind if operation else '-'} in line "
        f"{verdict.line or '-'}, most of the run {verdict.where or '-'}; confirmed first: "
        f"{first or 'nothing'} of {tried} tried",
        false=false,
        right_at_first_place=verdict_right and placed and first_right,
        tried=tried,
    )


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


if __name__ == "__main__":
    main()
