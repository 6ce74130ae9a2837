"""How often pipediag is right on scripts that nobody here wrote.

    python -m benchmarks.public --mirrors DIR [--packages DIR] [--keep DIR] [NAME...]

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
from benchmarks.runs import RunFailedError, analyze
from pipediag.facts.order import to_act_on
from pipediag.session.model import Session

NOTHING = "none"


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

    @property
    def line(self) -> str:
        """Return the outcome in a line."""
        if self.error is not None:
            return f"fail {self.script.name}: {self.error}"
        word = "ok  " if self.verdict_right and self.advice_right else "MISS"
        return f"{word} {self.script.name}: {self.verdict}; first {self.advice}"


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
@click.argument("names", nargs=-1)
def main(
    mirrors: Path, packages: Path | None, budget: float, keep: Path | None, names: tuple[str, ...]
) -> None:
    """Run the scripts, print a line each, and the totals."""
    try:
        chosen = public_scripts(names)
    except SourceError as error:
        raise click.UsageError(str(error)) from error
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="pipediag-public-") as temporary:
        place = (keep or Path(temporary)).resolve()
        for script in chosen:
            began = time.monotonic()
            folder = place / script.name
            try:
                session = _run(
                    script, mirrors.resolve(), packages and packages.resolve(), folder, budget
                )
            except (SourceError, RunFailedError) as error:
                outcomes.append(Outcome(script, error=str(error)))
            else:
                outcomes.append(judged(script, session))
            click.echo(f"{outcomes[-1].line}; {time.monotonic() - began:.0f} s")
    click.echo(
        f"Verdict right in {sum(o.verdict_right for o in outcomes)} of {len(outcomes)}, first "
        f"advice an expert's in {sum(o.advice_right for o in outcomes)}."
    )
    sys.exit(not all(o.verdict_right and o.advice_right for o in outcomes))


def _run(
    script: PublicScript, mirrors: Path, packages: Path | None, folder: Path, budget_s: float
) -> Session:
    shutil.rmtree(folder, ignore_errors=True)
    path = made(script, mirrors, folder)
    variables = {**environment(script, folder, packages), "NO_COLOR": "1"}
    return analyze(
        Path(path.name), folder / "report", budget_s, variables=variables, directory=folder
    )


def judged(script: PublicScript, session: Session) -> Outcome:
    """Compare the session with the table's truth."""
    if session.steps is None:
        return Outcome(script, error=session.steps_missing or "no step was measured")
    verdict, truth = session.verdict, script.truth
    first = next((one for one in session.findings if to_act_on(one)), None)
    rule = first.rule if first else NOTHING
    in_script = verdict.file is not None and Path(verdict.file).name == f"{script.name}.py"
    place = f", line {verdict.line}" if in_script else ""
    where_right = not truth.where or verdict.where in truth.where
    return Outcome(
        script,
        verdict=f"{verdict.bottleneck}{place}; {verdict.where or '-'}",
        advice=f"{rule} ({first.trial.state.replace('_', ' ')})" if first else rule,
        verdict_right=verdict.bottleneck in truth.bottleneck and where_right,
        advice_right=rule in truth.advice,
    )


if __name__ == "__main__":
    main()
