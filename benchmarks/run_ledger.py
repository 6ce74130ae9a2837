"""How near the ledger of a run comes to what the script's own clock says.

    python -m benchmarks.run_ledger [--rounds N] [--keep DIR] [--table FILE] [NAME...]
    python -m benchmarks.run_ledger --kept DIR [--table FILE] [NAME...]

Each script in benchmarks/run_scripts stamps the parts of its own run. It runs under `pipediag
analyze --run-to-end --budget 0`, and the ledger's parts are compared with the stamps of the same
run. What would have been projected of the run, had it been stopped when its loop was measured, is
compared with the rest of it: two runs differ by more than a projection does. The exit status is 1
if a goal was missed.
"""

from __future__ import annotations

import json
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
from pipediag.session.store import load_session
from pipediag.vocabulary import RUN_PARTS, RunPartName

SCRIPTS = Path(__file__).with_name("run_scripts")
STAMPS = "RUN_LEDGER_STAMPS"
PART_GOAL = 5.0
"""Percent of the run that a part may be off by."""
TOTAL_GOAL = 10.0
"""Percent that a projected total may be off by."""
AROUND_THE_SCRIPT = ("the interpreter", "exit")

Parts = dict[RunPartName, float]
"""Seconds, percent of the run, or differences of those."""


@dataclass(frozen=True)
class Stamps:
    """What a script's own clock wrote of its run."""

    began_s: float
    """The script's first line, by `time.monotonic()`."""
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
    return Stamps(read["began"], tuple(read["legs"]))


@dataclass(frozen=True)
class Round:
    """Differences of a ledger from the stamps of the same run, in percent."""

    parts: Parts
    """Of the run."""
    total: float | None
    """Percent by which the total that was projected on its way is above its own total; None where
    there is no projection to a known end."""


def compared(ended: Run, stamps: Stamps, on_the_way: OnTheWay | None) -> Round:
    """Compare the ledger of a whole run with the stamps of the same run.

    What pipediag does while the script runs is in the steps of the first training: the surplus of
    the stamps is subtracted from those.
    """
    ledger = parts_of(ended)
    surplus = max(0.0, sum(stamps.parts().values()) - sum(ledger.values()))
    undisturbed = without_steps(stamps, surplus)
    total = None
    if on_the_way is not None and on_the_way.run.projected_total_s is not None:
        trainings = trainings_until(on_the_way, stamps)
        total = total_error(on_the_way.run, undisturbed.parts(trainings))
    return Round(differences(ledger, undisturbed.parts()), total)


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


def total_error(run: Run, stamped: Parts) -> float | None:
    """Return the percentage by which a projected total is above the truth; None for an epoch."""
    if run.scope != "run":
        return None
    projected, true = (sum(after_start(one).values()) for one in (parts_of(run), stamped))
    return 100.0 * (projected / true - 1.0)


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


def in_the_middle(rounds: Sequence[Round]) -> Round:
    """Return the medians over all rounds of a script."""
    seen = {part for one in rounds for part in one.parts}
    totals = [one.total for one in rounds if one.total is not None]
    return Round(
        {part: median(one.parts.get(part, 0.0) for one in rounds) for part in seen},
        median(totals) if totals else None,
    )


def misses(one: Round) -> list[str]:
    """Return a sentence for each goal that was missed."""
    found = [
        f"{part} is {error:+.1f} % off the stamps"
        for part, error in one.parts.items()
        if abs(error) > PART_GOAL
    ]
    if one.total is not None and abs(one.total) > TOTAL_GOAL:
        found.append(f"the projected total is {one.total:+.1f} % off the run")
    return found


def cells(one: Round) -> tuple[str, str]:
    """Return the part that is off most, and the projected total."""
    part = max(one.parts, key=lambda name: abs(one.parts[name]))
    total = "-" if one.total is None else f"{one.total:+.1f} %"
    return f"{part} {one.parts[part]:+.1f} %", total


def summary(every: Sequence[Round]) -> list[str]:
    """Return how many scripts meet each goal, one sentence each."""
    parts = sum(max(map(abs, one.parts.values())) <= PART_GOAL for one in every)
    totals = [abs(one.total) for one in every if one.total is not None]
    near = sum(total <= TOTAL_GOAL for total in totals)
    return [
        f"All parts within {PART_GOAL:g} % of the stamps: {parts} of {len(every)}.",
        f"Projected total within {TOTAL_GOAL:g} % of the run: {near} of {len(totals)}.",
    ]


def markdown(every: Mapping[str, Round], machine: str) -> str:
    """Return the machine, the summary and a row for each script."""
    rows = [("script", "worst part", "projected total"), ("---",) * 3]
    rows += [(f"`{script}`", *cells(one)) for script, one in every.items()]
    table = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([machine, "", *summary([*every.values()]), "", *table]) + "\n"


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True)
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
                    run_round(script, path)
                one, machine = read_round(path)
            except RunFailedError as error:
                click.echo(f"fail {script.stem}: {error}")
                failed = True
                continue
            machines[machine] = None
            seen.setdefault(script.stem, []).append(one)
            said = "worst part {}; projected total {}".format(*cells(one))
            click.echo(f"{'miss' if misses(one) else 'ok':4} {script.stem}: {said}")
    every = {name: in_the_middle(seen[name]) for name in sorted(seen)}
    missed = [f"{name}: {miss}" for name, one in every.items() for miss in misses(one)]
    for sentence in (*missed, *summary([*every.values()])):
        click.echo(sentence)
    if table is not None and every:
        table.write_text(markdown(every, "; ".join(machines) + "."), encoding="utf-8")
    sys.exit(failed or bool(missed))


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


def run_round(script: Path, place: Path) -> None:
    """Run the script to its end under pipediag.

    Raises:
        RunFailedError: it failed.
    """
    place.mkdir(parents=True, exist_ok=True)
    stamps = {STAMPS: str((place / "to_end.json").absolute())}
    with kept_on_the_way(place / "to_end", place / "on_the_way"):
        analyze(script, place / "to_end", options=("--run-to-end",), variables=stamps)


def read_round(place: Path) -> tuple[Round, str]:
    """Return the comparison of a round, and the machine in words.

    Raises:
        RunFailedError: the run left nothing to compare.
    """
    session = load_session(place / "to_end")
    stamps = read_stamps(place / "to_end.json")
    if stamps is None:
        raise RunFailedError("the script's own clock has not written to_end.json")
    if session.run is None:
        raise RunFailedError(f"no ledger: {session.run_missing}")
    found = compared(session.run, stamps, read_on_the_way(place / "on_the_way"))
    return found, machine_of(session.environment)


if __name__ == "__main__":
    main()
