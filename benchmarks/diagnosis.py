"""How often pipediag is right on labelled scripts, and how often trials confirm what is not so.

    python -m benchmarks.diagnosis [--budget S] [--rounds N] [--keep DIR] [--table FILE] [NAME...]
    python -m benchmarks.diagnosis --sessions DIR [--table FILE] [NAME...]

Runs `pipediag analyze` on every sample and on every script in benchmarks/scripts, round by round,
and holds the session against the expectation beside the script: bottleneck, operation, line, rules,
and what trials confirm first, or confirm falsely. With `--sessions` it holds those against it that
`--keep` left, and runs nothing. The exit status is 1 if any run missed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.judgement import Outcome, failed, judge, markdown, totals
from benchmarks.machine import machine_of
from benchmarks.samples import RunFailedError, analyze
from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.store import load_session
from pipediag.session.trials import NO_BUDGET
from tests.samples.expectation import Expectation, all_expectations

SCRIPTS = Path(__file__).with_name("scripts")


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
    for sentence in totals(outcomes).sentences():
        click.echo(sentence)
    if table is not None and machines:
        table.write_text(markdown(outcomes, "; ".join(machines) + "."), encoding="utf-8")
    sys.exit(any(outcome.misses for outcome in outcomes))


Judged = tuple[Expectation, Session | RunFailedError]


def runs(
    names: tuple[str, ...], budget_s: float, rounds: int, keep: Path | None
) -> Iterable[Judged]:
    """A fresh session of each labelled script, round by round, or why there is none."""
    for number in range(1, rounds + 1):
        for expected in labelled(names):
            place = keep and keep / expected.name / f"round{number}"
            try:
                yield expected, run(expected, budget_s, place)
            except RunFailedError as error:
                yield expected, error


def kept(names: tuple[str, ...], folder: Path) -> Iterable[Judged]:
    """The sessions that earlier runs kept."""
    for expected in labelled(names):
        for path in sorted((folder / expected.name).rglob(SESSION_FILE)):
            yield expected, load_session(path)


def labelled(names: tuple[str, ...] = ()) -> list[Expectation]:
    """The labelled scripts that can run here: those named, or all.

    Raises:
        click.UsageError: a name that no script has.
    """
    every = [*all_expectations(), *all_expectations(SCRIPTS)]
    if unknown := set(names) - {expected.name for expected in every}:
        raise click.UsageError(f"no script is called {', '.join(sorted(unknown))}")
    chosen = [expected for expected in every if not names or expected.name in names]
    return [expected for expected in chosen if not expected.missing_modules]


def run(expected: Expectation, budget_s: float, keep: Path | None) -> Session:
    """Diagnose one script; its session is copied to the directory `keep`.

    Raises:
        RunFailedError: it left no session that could be judged.
    """
    with tempfile.TemporaryDirectory(prefix="pipediag-diagnosis-") as directory:
        output = Path(directory)
        session = analyze(expected.script, output, budget_s, exit_status=expected.exit_status)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(output / SESSION_FILE, keep)
        return session


def say(outcome: Outcome) -> None:
    """One line a run, and one for each miss."""
    click.echo(
        f"{'miss' if outcome.misses else 'ok':4} {outcome.name}: expected "
        f"{outcome.expected_bottleneck} in line {outcome.expected_line}, found "
        f"{outcome.found_bottleneck} by {outcome.found_operation} in line {outcome.found_line}; "
        f"confirmed first: {outcome.first_confirmed or 'nothing'} of {outcome.tried} tried"
    )
    for miss in outcome.misses:
        click.echo(f"    {miss}")


if __name__ == "__main__":
    main()
