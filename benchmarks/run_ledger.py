"""How near the ledger of a run comes to what the script's own clock says.

    python -m benchmarks.run_ledger [--rounds N] [--same-run] [--keep DIR] [--table FILE] [NAME...]
    python -m benchmarks.run_ledger --kept DIR [--table FILE] [NAME...]

Each script in benchmarks/run_scripts stamps the parts of its own run. It runs natively, under
`pipediag analyze --run-to-end`, and under `pipediag analyze`, which stops it early and projects the
rest to the planned end; all with `--budget 0`, round by round. The ledger's parts are compared with
the stamps of the same run and of the native one, its projected total with the native run. What
would have been projected of the run that was not stopped is compared with that run. On a machine
that does other things as well only the same run says much: `--same-run`. The exit status is 1 if a
goal was missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.on_the_way import OnTheWay, kept_on_the_way, read_on_the_way
from benchmarks.runs import RunFailedError, analyze, machine_of
from pipediag.session.ledger import Run
from pipediag.session.model import Session
from pipediag.session.store import load_session
from pipediag.vocabulary import RUN_PARTS, RunPartName

SCRIPTS = Path(__file__).with_name("run_scripts")
STAMPS = "RUN_LEDGER_STAMPS"
NATIVE_LIMIT_S = 180
PART_GOAL = 5.0
"""Percent of the run that a part may be off by."""
TOTAL_GOAL = 10.0
"""Percent that a projected total may be off by."""
LOOP_PARTS: tuple[RunPartName, ...] = ("epoch_start", "steps", "evaluation", "epoch_end")
"""Parts of an epoch of a loop without a known end."""
AROUND_THE_SCRIPT = ("the interpreter", "exit")

Parts = dict[RunPartName, float]
"""Seconds, percent of the run, or differences of those."""


@dataclass(frozen=True)
class Stamps:
    """What a script's own clock wrote of its run."""

    began_s: float
    """The script's first line, by `time.monotonic()`."""
    begun: int
    """Trainings that began."""
    legs: tuple[Parts, ...]
    """Seconds; each leg ends with a training, the last one with the run."""

    def parts(self, trainings: int | None = None) -> Parts:
        """Return the seconds of all legs, or up to the end of so many trainings."""
        return added(self.legs if trainings is None else self.legs[:trainings])


def read_stamps(path: Path) -> Stamps | None:
    """Return the stamps, or None where the script wrote none, as it was stopped or has failed."""
    if not path.is_file():
        return None
    read = json.loads(path.read_text(encoding="utf-8"))
    if strange := {part for leg in read["legs"] for part in leg} - set(RUN_PARTS):
        raise ValueError(f"the stamps name {', '.join(sorted(strange))}, which are no parts")
    return Stamps(read["began"], read["begun"], tuple(read["legs"]))


@dataclass(frozen=True)
class Round:
    """Differences of a ledger's parts from stamps, in percent of the run."""

    same_run: Parts
    """The run that was not stopped, against the stamps of the same run."""
    same_total_error: float | None
    """Percent by which the total that was projected on its way is above its own total."""
    native_s: float | None = None
    """The native run, from the script's first line to its end; None if only the same run counts."""
    native: Parts | None = None
    """The run that was not stopped, against the native run, both without the start-up."""
    stopped: Parts | None = None
    """The run that was stopped, against the same part of the native run."""
    scope: str = "-"
    """What the ledger of the stopped run covers."""
    total_error: float | None = None
    """Percent by which its projected total is above the native one; None without a known end."""


def compared(ended: Run, stamps: Stamps, on_the_way: OnTheWay | None) -> Round:
    """Compare the ledger of a whole run with the stamps of the same run.

    What pipediag does while the script runs is in the steps of the first training: the surplus of
    the stamps is subtracted from those.
    """
    ledger = parts_of(ended)
    surplus = max(0.0, sum(stamps.parts().values()) - sum(ledger.values()))
    undisturbed = without_steps(stamps, surplus)
    total_error = None
    if on_the_way is not None:
        trainings = trainings_until(on_the_way, stamps)
        total_error = compared_as_stopped(on_the_way.run, trainings, undisturbed)[1]
    return Round(differences(ledger, undisturbed.parts()), total_error)


def without_steps(stamps: Stamps, seconds: float) -> Stamps:
    """Return the stamps with so much less in the steps, the earliest first."""
    legs = []
    for leg in stamps.legs:
        taken = min(seconds, leg.get("steps", 0.0))
        seconds -= taken
        legs.append({**leg, "steps": leg["steps"] - taken} if taken else leg)
    return replace(stamps, legs=tuple(legs))


def trainings_until(on_the_way: OnTheWay, stamps: Stamps) -> int:
    """Return how many trainings the projection covers, as the script's own clock counts them."""
    over_s = stamps.began_s
    for number, leg in enumerate(stamps.legs, start=1):
        over_s += sum(leg.values())
        if on_the_way.rounds == 1 and over_s > on_the_way.at_ns / 1e9:
            return number
    return len(stamps.legs)


def compared_as_stopped(run: Run, trainings: int, native: Stamps) -> tuple[Parts, float | None]:
    """Compare the ledger of a stopped run with the part of a whole run that it covers.

    Returns the differences, and the percentage by which the projected total is above the truth, or
    None if there is no projection to a known end.
    """
    projected = run.projected_total_s is not None
    part = after_start(native.parts(trainings if projected else None))
    if projected and run.scope != "run":
        part = {name: seconds for name, seconds in part.items() if name in LOOP_PARTS}
    ledger = after_start(parts_of(run))
    total = 100.0 * (sum(ledger.values()) / sum(part.values()) - 1.0)
    return differences(ledger, part), total if projected and run.scope == "run" else None


def compared_with_native(
    same_run: Round, ended: Run, stopped: Run, trainings: int, native: Stamps
) -> Round:
    """Compare both runs with the native one as well."""
    whole = native.parts()
    parts, total_error = compared_as_stopped(stopped, trainings, native)
    return replace(
        same_run,
        native_s=sum(whole.values()),
        native=differences(after_start(parts_of(ended)), after_start(whole)),
        stopped=parts,
        scope=stopped.scope if stopped.projected_total_s is not None else "ran to its end",
        total_error=total_error,
    )


def added(every: Iterable[Mapping[RunPartName, float]]) -> Parts:
    """Add part by part, in the ledger's order."""
    listed = list(every)
    sums: Parts = {part: sum(parts.get(part, 0.0) for parts in listed) for part in RUN_PARTS}
    return {part: seconds for part, seconds in sums.items() if seconds > 0}


def parts_of(run: Run) -> Parts:
    """Return the seconds of the ledger's parts, without those that no clock of the script sees."""
    return added({one.part: one.seconds} for one in run.parts if one.what not in AROUND_THE_SCRIPT)


def after_start(parts: Parts) -> Parts:
    """Leave imports out: they take twice as long in one run as in the next."""
    return {part: seconds for part, seconds in parts.items() if part != "startup"}


def differences(ledger: Parts, stamps: Parts) -> Parts:
    """Return how much of the run each part is above the truth, in percent."""
    whole, true = sum(ledger.values()) or 1.0, sum(stamps.values()) or 1.0
    return {
        part: 100.0 * (ledger.get(part, 0.0) / whole - stamps.get(part, 0.0) / true)
        for part in RUN_PARTS
        if part in ledger or part in stamps
    }


@dataclass(frozen=True)
class Judged:
    """The medians over all rounds of a script."""

    script: str
    same_run: Parts
    native: Parts
    stopped: Parts
    native_s: float | None
    same_total_error: float | None
    total_error: float | None
    scope: str

    @classmethod
    def of(cls, script: str, rounds: Sequence[Round]) -> Judged:
        """Take the medians."""
        return cls(
            script,
            _medians(one.same_run for one in rounds),
            _medians(one.native for one in rounds),
            _medians(one.stopped for one in rounds),
            _median(one.native_s for one in rounds),
            _median(one.same_total_error for one in rounds),
            _median(one.total_error for one in rounds),
            rounds[-1].scope,
        )

    @property
    def misses(self) -> list[str]:
        """Return a sentence for each goal that was missed."""
        missed = [
            f"{part} is {error:+.1f} % off {what}"
            for what, errors in (
                ("the same run's stamps", self.same_run),
                ("the native run", self.native),
            )
            for part, error in errors.items()
            if abs(error) > PART_GOAL
        ]
        missed += [
            f"the projected total is {error:+.1f} % off the {of} run"
            for of, error in (("native", self.total_error), ("same", self.same_total_error))
            if error is not None and abs(error) > TOTAL_GOAL
        ]
        return missed

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the cells of `COLUMNS` after the script."""
        native = "-" if self.native_s is None else f"{self.native_s:.1f} s"
        same, total = (
            "-" if error is None else f"{error:+.1f} %"
            for error in (self.same_total_error, self.total_error)
        )
        worst = [_worst(errors) for errors in (self.same_run, self.native, self.stopped)]
        return native, worst[0], same, worst[1], self.scope, total, worst[2]


COLUMNS = (
    "script",
    "native",
    "same run, worst part",
    "same run, total",
    "native run, worst part",
    "stopped, scope",
    "stopped, total",
    "stopped, worst part",
)


def _medians(every: Iterable[Parts | None]) -> Parts:
    listed = [one for one in every if one]
    return {
        part: median(one.get(part, 0.0) for one in listed)
        for part in RUN_PARTS
        if any(part in one for one in listed)
    }


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _worst(errors: Parts) -> str:
    if not errors:
        return "-"
    part = max(errors, key=lambda one: abs(errors[one]))
    return f"{part} {errors[part]:+.1f} %"


def summary(every: Sequence[Judged]) -> list[str]:
    """Return how many scripts meet each goal, one sentence each."""
    sentences = []
    for what, parts in (
        ("of the same run's stamps", [one.same_run for one in every]),
        ("of the native run", [one.native for one in every if one.native]),
        ("of the native run, stopped", [one.stopped for one in every if one.stopped]),
    ):
        good = sum(max(map(abs, errors.values())) <= PART_GOAL for errors in parts)
        sentences.append(f"All parts within {PART_GOAL:g} % {what}: {good} of {len(parts)}.")
    for what, totals in (
        ("same", [one.same_total_error for one in every]),
        ("native", [one.total_error for one in every]),
    ):
        errors = [error for error in totals if error is not None]
        good = sum(abs(error) <= TOTAL_GOAL for error in errors)
        goal = f"Projected total within {TOTAL_GOAL:g} % of the {what} run"
        sentences.append(f"{goal}: {good} of {len(errors)}.")
    return sentences


def markdown(every: Sequence[Judged], machine: str) -> str:
    """Return the machine, the summary and a row for each script."""
    rows = [COLUMNS, ["---"] * len(COLUMNS), *((f"`{one.script}`", *one.cells) for one in every)]
    table = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([machine, "", *summary(every), "", *table]) + "\n"


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
        for script, path in places(kept or Path(folder), None if kept else rounds, names):
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
            judged = Judged.of(script.stem, [one])
            cells = "; ".join(map(" ".join, zip(COLUMNS[1:], judged.cells, strict=True)))
            click.echo(f"{'miss' if judged.misses else 'ok':4} {script.stem}: {cells}")
    every = [Judged.of(name, seen[name]) for name in sorted(seen)]
    for judged in every:
        for miss in judged.misses:
            click.echo(f"{judged.script}: {miss}")
    for sentence in summary(every):
        click.echo(sentence)
    if table is not None and every:
        table.write_text(markdown(every, "; ".join(machines) + "."), encoding="utf-8")
    sys.exit(failed or any(judged.misses for judged in every))


def places(folder: Path, rounds: int | None, names: Sequence[str]) -> Iterator[tuple[Path, Path]]:
    """Yield each script with the folder of each round; `rounds` is None: those that were kept."""
    every = chosen(names)
    if rounds is None:
        for script in every:
            for place in sorted((folder / script.stem).glob("round*")):
                yield script, place
        return
    for number in range(1, rounds + 1):
        for script in every:
            yield script, folder / script.stem / f"round{number}"


def chosen(names: Sequence[str] = ()) -> list[Path]:
    """Return the scripts that are named, or all.

    Raises:
        click.UsageError: a name that no script has.
    """
    every = sorted(SCRIPTS.glob("*.py"))
    if unknown := set(names) - {script.stem for script in every}:
        raise click.UsageError(f"no script is called {', '.join(sorted(unknown))}")
    return [script for script in every if not names or script.stem in names]


def run_round(script: Path, place: Path, same_run: bool) -> None:
    """Run the script natively, to its end under pipediag, and stopped; or the second alone.

    Raises:
        RunFailedError: one of the runs failed.
    """
    place.mkdir(parents=True, exist_ok=True)
    if not same_run:
        _run_natively(script, place / "native.json")
        stamps = {STAMPS: str((place / "stopped.json").absolute())}
        analyze(script, place / "stopped", variables=stamps)
    stamps = {STAMPS: str((place / "to_end.json").absolute())}
    with kept_on_the_way(place / "to_end", place / "on_the_way"):
        analyze(script, place / "to_end", options=("--run-to-end",), variables=stamps)


def _run_natively(script: Path, path: Path) -> None:
    try:
        done = subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, STAMPS: str(path.absolute())},
            capture_output=True,
            text=True,
            timeout=NATIVE_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RunFailedError(f"natively it had not ended after {error.timeout:g} s") from error
    if done.returncode != 0:
        raise RunFailedError(f"natively, exit status {done.returncode}: {done.stderr[-400:]}")


def read_round(place: Path) -> tuple[Round, str]:
    """Return the comparison of a round, and the machine in words.

    Raises:
        RunFailedError: one of the runs left nothing to compare.
    """
    session = load_session(place / "to_end")
    stamps = read_stamps(place / "to_end.json")
    if stamps is None:
        raise RunFailedError("the script's own clock has not written to_end.json")
    ended, machine = ledger_of(session), machine_of(session.environment)
    same_run = compared(ended, stamps, read_on_the_way(place / "on_the_way"))
    native = read_stamps(place / "native.json")
    if native is None:
        return same_run, machine
    cut = load_session(place / "stopped")
    begun = read_stamps(place / "stopped.json")
    trainings = begun.begun if begun else 1
    loop = cut.diagnosed_loop()
    # The projection continues a `fit` whose rounds are known from the source to the last of them.
    if loop is not None and loop.keras is not None and (loop.planned_rounds or 1) > 1:
        trainings = len(native.legs)
    return compared_with_native(same_run, ended, ledger_of(cut), trainings, native), machine


def ledger_of(session: Session) -> Run:
    """Return the run's ledger.

    Raises:
        RunFailedError: there is none.
    """
    if session.run is None:
        raise RunFailedError(f"no ledger: {session.run_missing}")
    return session.run


if __name__ == "__main__":
    main()
