"""How often pipediag is right on scripts that nobody here wrote.

    python -m benchmarks.public --mirrors DIR [--packages DIR] [--table FILE] [NAME...]

Takes the scripts of public_scripts/table.toml out of mirrors of their repositories, makes each one
run offline in a folder of its own, and compares `pipediag analyze` with what probes found that do
not use it. The table has what those measured. NAME is a script or a group: `slow` has those that
were chosen because one sees by reading why they are slow.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.public_scripts.scripts import (
    PublicScript,
    SourceError,
    environment,
    made,
    public_scripts,
)
from benchmarks.runs import RunFailedError, analyze, machine_of
from pipediag.facts.order import to_act_on
from pipediag.session.model import Session
from pipediag.session.store import load_session

NOTHING = "none"
REPORT = "report"


@dataclass(frozen=True)
class Outcome:
    """One script under pipediag."""

    script: PublicScript
    verdict: str = "-"
    """Bottleneck, line and part of the run."""
    advice: str = "-"
    """The rule that the report advises first, and its state; `none` where it advises nothing."""
    verdict_right: bool = False
    advice_right: bool = False
    error: str | None = None
    """Why there is no session."""


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option(
    "--mirrors",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Git directories, DIR/owner+name/repo or DIR/owner/name.",
)
@click.option(
    "--packages",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where `pip install --target DIR --group public-scripts` put what the scripts import.",
)
@click.option("--budget", default=30.0, show_default=True, help="Seconds of trials.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep scripts and reports here.")
@click.option("--judge", is_flag=True, help="Judge what an earlier --keep left there again.")
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.argument("names", nargs=-1)
def main(
    mirrors: Path,
    packages: Path | None,
    budget: float,
    keep: Path | None,
    judge: bool,
    table: Path | None,
    names: tuple[str, ...],
) -> None:
    """Run the scripts, print a line each, and the totals."""
    try:
        chosen = public_scripts(names)
    except SourceError as error:
        raise click.UsageError(str(error)) from error
    outcomes: list[Outcome] = []
    machines: dict[str, None] = {}
    with tempfile.TemporaryDirectory(prefix="pipediag-public-") as temporary:
        place = (keep or Path(temporary)).resolve()
        for script in chosen:
            began = time.monotonic()
            folder = place / script.name
            try:
                if not judge:
                    _run(script, mirrors.resolve(), packages and packages.resolve(), folder, budget)
                session = load_session(folder / REPORT)
            except (SourceError, RunFailedError) as error:
                outcomes.append(Outcome(script, error=str(error)))
            else:
                outcomes.append(judged(script, session))
                machines[machine_of(session.environment)] = None
            click.echo(f"{line(outcomes[-1])}; {time.monotonic() - began:.0f} s")
    click.echo(totals(outcomes))
    if table is not None:
        table.write_text(markdown(outcomes, "; ".join(machines)), encoding="utf-8")
    sys.exit(not all(o.verdict_right and o.advice_right for o in outcomes))


def _run(
    script: PublicScript, mirrors: Path, packages: Path | None, folder: Path, budget_s: float
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    path = made(script, mirrors, folder)
    variables = {**environment(script, folder, packages), "NO_COLOR": "1"}
    analyze(Path(path.name), folder / REPORT, budget_s, variables=variables, directory=folder)


def judged(script: PublicScript, session: Session) -> Outcome:
    """Compare the session with the table's truth."""
    if session.steps is None:
        return Outcome(script, error=session.steps_missing or "no step was measured")
    verdict, truth = session.verdict, script.truth
    first = next((one for one in session.findings if to_act_on(one)), None)
    rule = first.rule if first else NOTHING
    in_script = verdict.file is not None and Path(verdict.file).name == f"{script.name}.py"
    found = verdict.line if in_script else None
    right = not truth.lines or found in truth.lines
    right = right and (not truth.where or verdict.where in truth.where)
    place = f", line {found}" if found else ""
    return Outcome(
        script,
        verdict=f"{verdict.bottleneck}{place}; {verdict.where or '-'}",
        advice=f"{rule} ({first.trial.state.replace('_', ' ')})" if first else rule,
        verdict_right=verdict.bottleneck in truth.bottleneck and right,
        advice_right=rule in truth.advice,
    )


def totals(outcomes: Sequence[Outcome]) -> str:
    """Return the counts in one line."""
    return (
        f"Verdict right in {sum(o.verdict_right for o in outcomes)} of {len(outcomes)}, first "
        f"advice an expert's in {sum(o.advice_right for o in outcomes)}."
    )


def line(outcome: Outcome) -> str:
    """Return one script for the terminal."""
    name = outcome.script.name
    if outcome.error is not None:
        return f"fail {name}: {outcome.error}"
    word = "ok  " if outcome.verdict_right and outcome.advice_right else "MISS"
    return f"{word} {name}: {outcome.verdict}; first {outcome.advice}"


def markdown(outcomes: Sequence[Outcome], machines: str) -> str:
    """Return two tables: what was found, and where each script comes from."""
    rows = [
        "# Scripts that nobody here wrote",
        "",
        f"`python -m benchmarks.public --mirrors DIR`. {machines}.",
        "",
        totals(outcomes),
        "",
        "| script | truth | found | right | expert's first advice | first advice | right |",
        "|" + "---|" * 7,
        *map(_row, outcomes),
        "",
        "## Where they come from, what was changed, and how the truth was found",
        "",
        "By probes: a step of the script as it is `written`, natively; on one batch `repeated`, as "
        "if input were free; and on `half` of that batch, which shows what does not depend on the "
        "batch: starting the step, and updates of whole tables. `read`: from the source.",
        "",
        "| script | source | changed | truth found by |",
        "|" + "---|" * 4,
        *(_source(outcome.script) for outcome in outcomes),
    ]
    return "\n".join(rows) + "\n"


def _row(outcome: Outcome) -> str:
    truth = outcome.script.truth
    cells = [
        f"`{outcome.script.name}`",
        " or ".join(truth.bottleneck) + (f"; {' or '.join(truth.where)}" if truth.where else ""),
        outcome.error or outcome.verdict,
        "yes" if outcome.verdict_right else "no",
        " or ".join(truth.advice),
        outcome.advice,
        "yes" if outcome.advice_right else "no",
    ]
    return f"| {' | '.join(cells)} |"


def _source(script: PublicScript) -> str:
    place = f"{script.repository} {script.commit[:10]} `{script.path}`"
    return f"| `{script.name}` | {place} | {script.changed} | {script.truth.how} |"


if __name__ == "__main__":
    main()
