"""How near the ledger of a run comes to what the script's own clock says.

    python -m benchmarks.run_ledger [--rounds N] [--keep DIR] [--table FILE] [NAME...]

Each script in benchmarks/run_scripts stamps the parts of its own run. It runs natively, under
`pipediag analyze --run-to-end`, and under `pipediag analyze`, which stops it early and carries on
what it saw to the planned end; all with `--budget 0`, round by round. The ledger's parts are held
against the stamps of the same run and of the native one, its projected total against the native
run as far as it speaks of it. The exit status is 1 if a goal was missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.ledger_comparison import Judged, Round, ended_run, percents, stopped_run
from benchmarks.ledger_stamps import (
    Edges,
    Process,
    Stamps,
    edges_of,
    read_stamps,
    with_edges,
)
from benchmarks.ledger_tables import line, markdown, summary
from benchmarks.machine import machine_of
from benchmarks.samples import RunFailedError, analyze
from pipediag.session.ledger import Run
from pipediag.session.model import Session

SCRIPTS = Path(__file__).with_name("run_scripts")
STAMPS = "RUN_LEDGER_STAMPS"
_NATIVE_S = 180


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Keep what each run wrote here.")
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.argument("names", nargs=-1)
def main(rounds: int, keep: Path | None, table: Path | None, names: tuple[str, ...]) -> None:
    """Run the scripts, print a line each, and the totals."""
    scripts = chosen(names)
    runs: dict[str, list[Round]] = {script.stem: [] for script in scripts}
    machines: dict[str, None] = {}
    place = nullcontext(keep) if keep is not None else tempfile.TemporaryDirectory()
    failed = False
    with place as folder:
        for number in range(1, rounds + 1):
            for script in scripts:
                try:
                    one, machine = run_round(script, Path(folder) / script.stem / f"round{number}")
                except RunFailedError as error:
                    click.echo(f"fail {script.stem}: {error}")
                    failed = True
                    continue
                machines[machine] = None
                runs[script.stem].append(one)
                click.echo(line(Judged(script.stem, [one])))
    every = [Judged(name, seen) for name, seen in runs.items() if seen]
    for judged in every:
        for miss in judged.misses:
            click.echo(f"{judged.script}: {miss}")
    for sentence in summary(every):
        click.echo(sentence)
    if table is not None and every:
        table.write_text(markdown(every, "; ".join(machines) + "."), encoding="utf-8")
    sys.exit(failed or any(judged.misses for judged in every))


def chosen(names: Sequence[str] = ()) -> list[Path]:
    """The scripts that are named, or all.

    Raises:
        click.UsageError: a name that no script has.
    """
    every = sorted(SCRIPTS.glob("*.py"))
    if unknown := set(names) - {script.stem for script in every}:
        raise click.UsageError(f"no script is called {', '.join(sorted(unknown))}")
    return [script for script in every if not names or script.stem in names]


def run_round(script: Path, place: Path) -> tuple[Round, str]:
    """Once natively, once to its end under pipediag, once stopped; with the machine in words.

    Raises:
        RunFailedError: one of the runs left nothing to compare.
    """
    place.mkdir(parents=True, exist_ok=True)
    native, edges = run_natively(script, place / "native.json")
    to_end, stamps = run_watched(script, place / "to_end", ["--run-to-end"])
    if stamps is None:
        raise RunFailedError("the script's own clock wrote nothing of the run to its end")
    stopped, stamps_of_stopped = run_watched(script, place / "stopped", [])
    whole = with_edges(native.parts(), edges)
    return Round(
        native_s=sum(whole.values()),
        native=percents(whole),
        ended=ended_run(ledger_of(to_end), stamps, edges),
        stopped=stopped_run(
            ledger_of(stopped),
            stamps_of_stopped.begun if stamps_of_stopped is not None else 1,
            native,
            edges,
        ),
    ), machine_of(to_end.environment)


def run_natively(script: Path, path: Path) -> tuple[Stamps, Edges]:
    """The script alone.

    Raises:
        RunFailedError: it failed, or did not end in time.
    """
    spawned = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, STAMPS: str(path.absolute())},
            capture_output=True,
            text=True,
            timeout=_NATIVE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RunFailedError(f"natively it had not ended after {error.timeout:g} s") from error
    gone = time.monotonic()
    stamps = read_stamps(path)
    if done.returncode != 0 or stamps is None:
        raise RunFailedError(f"natively, exit status {done.returncode}: {done.stderr[-400:]}")
    return stamps, edges_of(stamps, Process(spawned, gone))


def run_watched(
    script: Path, output: Path, options: Sequence[str]
) -> tuple[Session, Stamps | None]:
    """The script under `pipediag analyze`, and what its own clock says of that run.

    Raises:
        RunFailedError: it left no session.
    """
    path = output.with_suffix(".json").absolute()
    session = analyze(script, output, options=options, variables={STAMPS: str(path)})
    return session, read_stamps(path)


def ledger_of(session: Session) -> Run:
    """The run's ledger.

    Raises:
        RunFailedError: there is none.
    """
    if session.run is None:
        raise RunFailedError(f"no ledger: {session.run_missing}")
    return session.run


if __name__ == "__main__":
    main()
