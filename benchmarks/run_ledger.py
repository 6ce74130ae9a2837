"""How near the ledger of a run comes to what the script's own clock says.

    python -m benchmarks.run_ledger [--rounds N] [--same-run] [--keep DIR] [--table FILE] [NAME...]
    python -m benchmarks.run_ledger --kept DIR [--table FILE] [NAME...]

Each script in benchmarks/run_scripts stamps the parts of its own run. It runs natively, under
`pipediag analyze --run-to-end`, and under `pipediag analyze`, which stops it early and carries on
what it saw to the planned end; all with `--budget 0`, round by round. The ledger's parts are held
against the stamps of the same run and of the native one, its projected total against the native
run as far as it speaks of it. What would have been projected of the run that was let go on is held
against that run. On a machine that does other things as well only the same run says much:
`--same-run`. The exit status is 1 if a goal was missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.ledger_comparison import (
    Judged,
    Native,
    Round,
    Stopped,
    after_start,
    ended_run,
    percents,
    stopped_run,
    undisturbed,
)
from benchmarks.ledger_on_the_way import kept_on_the_way, read_on_the_way
from benchmarks.ledger_stamps import Stamps, read_stamps
from benchmarks.ledger_tables import line, markdown, summary
from benchmarks.machine import machine_of
from benchmarks.samples import RunFailedError, analyze
from pipediag.session.ledger import Run
from pipediag.session.model import Session
from pipediag.session.store import load_session

SCRIPTS = Path(__file__).with_name("run_scripts")
STAMPS = "RUN_LEDGER_STAMPS"
_WATCHED = {"to_end": ("--run-to-end",), "stopped": ()}
_NATIVE_S = 180


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--same-run", is_flag=True, help="Only to its end, against the stamps of that run.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep what each run wrote here.")
@click.option(
    "--kept",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Compare what --keep left here, and run nothing.",
)
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.argument("names", nargs=-1)
def main(
    rounds: int,
    same_run: bool,
    keep: Path | None,
    kept: Path | None,
    table: Path | None,
    names: tuple[str, ...],
) -> None:
    """Run the scripts, print a line each, and the totals."""
    seen: dict[str, list[Round]] = {}
    machines: dict[str, None] = {}
    failed = False
    place = nullcontext(keep) if keep is not None else tempfile.TemporaryDirectory()
    with place as folder:
        places = kept_rounds(kept, names) if kept else fresh_rounds(Path(folder), rounds, names)
        for script, path in places:
            try:
                if kept is None:
                    run_round(script, path, same_run)
                one, machine = read_round(path)
            except RunFailedError as error:
                click.echo(f"fail {script.stem}: {error}")
                failed = True
                continue
            machines[machine] = None
            seen.setdefault(script.stem, []).append(one)
            click.echo(line(Judged(script.stem, [one])))
    every = [Judged(name, seen[name]) for name in sorted(seen)]
    for judged in every:
        for miss in judged.misses:
            click.echo(f"{judged.script}: {miss}")
    for sentence in summary(every):
        click.echo(sentence)
    if table is not None and every:
        table.write_text(markdown(every, "; ".join(machines) + "."), encoding="utf-8")
    sys.exit(failed or any(judged.misses for judged in every))


def fresh_rounds(folder: Path, rounds: int, names: Sequence[str]) -> Iterator[tuple[Path, Path]]:
    """Each script with a place for what it writes, round by round."""
    for number in range(1, rounds + 1):
        for script in chosen(names):
            yield script, folder / script.stem / f"round{number}"


def kept_rounds(folder: Path, names: Sequence[str]) -> Iterator[tuple[Path, Path]]:
    """What was kept of each script."""
    for script in chosen(names):
        for place in sorted((folder / script.stem).glob("round*")):
            yield script, place


def chosen(names: Sequence[str] = ()) -> list[Path]:
    """The scripts that are named, or all.

    Raises:
        click.UsageError: a name that no script has.
    """
    every = sorted(SCRIPTS.glob("*.py"))
    if unknown := set(names) - {script.stem for script in every}:
        raise click.UsageError(f"no script is called {', '.join(sorted(unknown))}")
    return [script for script in every if not names or script.stem in names]


def run_round(script: Path, place: Path, same_run: bool) -> None:
    """Once natively, once to its end under pipediag, once stopped; or the second alone.

    Raises:
        RunFailedError: one of the runs failed.
    """
    place.mkdir(parents=True, exist_ok=True)
    if not same_run:
        run_natively(script, place / "native.json")
    for name, options in _WATCHED.items():
        if same_run and name != "to_end":
            continue
        stamps = {STAMPS: str((place / f"{name}.json").absolute())}
        with kept_on_the_way(place / name, place / f"{name}_on_the_way"):
            analyze(script, place / name, options=options, variables=stamps)


def read_round(place: Path) -> tuple[Round, str]:
    """What a round left, and the machine in words.

    Raises:
        RunFailedError: one of the runs left nothing to compare.
    """
    session = load_session(place / "to_end")
    stamps = stamps_of(place / "to_end.json")
    ended = ended_run(ledger_of(session), stamps)
    carried_on = _carried_on(place, stamps, ended.disturbed_s)
    machine, native = machine_of(session.environment), read_stamps(place / "native.json")
    if native is None:
        return Round(ended, carried_on=carried_on), machine
    begun = read_stamps(place / "stopped.json")
    cut = load_session(place / "stopped")
    stopped = ledger_of(cut)
    whole = native.parts()
    return Round(
        ended,
        Native(sum(whole.values()), percents(after_start(whole))),
        stopped_run(stopped, _trainings_of(cut, begun, native), native),
        carried_on,
    ), machine


def _carried_on(place: Path, stamps: Stamps, disturbed_s: float) -> Stopped | None:
    found = read_on_the_way(place / "to_end_on_the_way")
    if found is None:
        return None
    return stopped_run(found.run, found.trainings(stamps), undisturbed(stamps, disturbed_s))


def _trainings_of(cut: Session, begun: Stamps | None, native: Stamps) -> int:
    """How many the projection of a run that was stopped speaks of: it goes on with a `fit` whose
    rounds the source tells, and ends with any other that was stopped."""
    loop = cut.diagnosed_loop()
    if loop is not None and loop.keras is not None and (loop.planned_rounds or 1) > 1:
        return len(native.legs)
    return begun.begun if begun else 1


def run_natively(script: Path, path: Path) -> None:
    """The script alone.

    Raises:
        RunFailedError: it failed, or did not end in time.
    """
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
    if done.returncode != 0:
        raise RunFailedError(f"natively, exit status {done.returncode}: {done.stderr[-400:]}")


def stamps_of(path: Path) -> Stamps:
    """What the script's own clock wrote.

    Raises:
        RunFailedError: nothing.
    """
    stamps = read_stamps(path)
    if stamps is None:
        raise RunFailedError(f"the script's own clock has not written {path.name}")
    return stamps


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
