"""What a finding promises for the run, and what the edited script then takes.

    python -m benchmarks.applied [--rounds N] [--budget S] [--table FILE] [NAME...]

For each sample in applied.toml: `pipediag analyze` once; the edits that it confirmed are written
into a copy of the script, as a person would; then script and copy run natively, to their ends, in
turn. Promised is the gain of the whole run, obtained is the ratio of the two processes' wall times.
A promise is kept where its interval and that of the ratio overlap. What no trial can try, the
ledger predicts, or bounds; a bound is kept where no more is obtained.
"""

from __future__ import annotations

import os
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks.machine import machine_of
from benchmarks.samples import RunFailedError, analyze
from pipediag.errors import PipediagError
from pipediag.facts.run_gain import gain_of_whole
from pipediag.runner.native_runs import kept, obtained, of_script
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from pipediag.trials.statistics import Estimate

EDITS = Path(__file__).with_suffix(".toml")
SAMPLES = Path(__file__).parents[1] / "sample_pipelines"
LIMIT_S = 400
CLOSE = 0.15
"""Goal for the median error of what is promised for a run."""
_BY = {"measured": "trials", "predicted": "the ledger", "at most": "the ledger, as the most"}


@dataclass(frozen=True)
class Applied:
    """One script with its confirmed edits."""

    name: str
    promised: RunGain | None
    """None where an edit that was written was not confirmed, or not predicted."""
    obtained: Estimate

    @property
    def error(self) -> float | None:
        """How far the promise is off, as a part of what was obtained; a bound says no size."""
        if self.promised is None or self.promised.basis == "at most":
            return None
        return abs(self.promised.speedup / self.obtained.value - 1.0)

    @property
    def kept(self) -> bool:
        """Whether the two intervals overlap, or no more was obtained than was called the most."""
        if self.promised is None:
            return False
        if self.promised.basis == "at most":
            return self.obtained.low <= self.promised.speedup
        return kept(self.promised, self.obtained)


def edited(name: str, changes: Sequence[dict[str, str]]) -> str:
    """The script's source with the changes in it.

    Raises:
        ValueError: what is to be replaced does not stand in it once.
    """
    text = (SAMPLES / f"{name}.py").read_text(encoding="utf-8")
    for change in changes:
        if text.count(change["old"]) != 1:
            raise ValueError(f"{name}.py has not once: {change['old']!r}")
        text = text.replace(change["old"], change["new"])
    return text


def promise(session: Session, rules: Sequence[str], by: str = "measured") -> RunGain | None:
    """What the session says of the run with the edits of these rules, where it says so by that."""
    if by != "measured":
        gains = [finding.for_run for finding in session.findings if finding.rule in rules]
        told = [gain for gain in gains if gain is not None and gain.basis == by]
        return max(told, key=lambda gain: gain.speedup, default=None)
    confirmed = [f for f in session.findings if f.trial.state == "confirmed" and f.edit is not None]
    chosen = [finding for finding in confirmed if finding.rule in rules]
    if {finding.rule for finding in chosen} != set(rules):
        return None
    if len(chosen) == 1:
        return chosen[0].for_run
    together = session.combined
    ids = {finding.edit.id for finding in chosen if finding.edit is not None}
    return together.for_run if together is not None and set(together.findings) == ids else None


def apply(
    name: str, known: dict[str, Any], folder: Path, rounds: int, budget_s: float
) -> tuple[Applied, str]:
    """Analyse, edit, run both; the second of what is returned is the machine in words.

    Raises:
        RunFailedError: the analysis failed.
        PipediagError: one of the native runs failed.
    """
    script, copy = SAMPLES / f"{name}.py", folder / f"{name}_edited.py"
    copy.write_text(edited(name, known["edits"]), encoding="utf-8")
    session = analyze(script, folder / name, budget_s)
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    native = obtained((of_script(script), of_script(copy)), rounds, env=quiet, timeout_s=LIMIT_S)
    told = promise(session, known["rules"], known.get("by", "measured"))
    promised = gain_of_whole(told, session.run, native.script_s)
    return Applied(name, promised, native.gain), machine_of(session.environment)


def line(one: Applied) -> str:
    """One script, for the terminal."""
    if one.promised is None:
        return f"none {one.name}: not promised; obtained {one.obtained}"
    word = "kept" if one.kept else "MISS"
    told = f"{word} {one.name}: {one.promised.basis} {interval(one.promised)}, obtained"
    error = "" if one.error is None else f", error {one.error:.1%}"
    return f"{told} {one.obtained}{error}"


def interval(gain: RunGain) -> str:
    """A promise with its interval, where it has one."""
    if gain.ci95 is None:
        return f"{gain.speedup:.2f}"
    return f"{gain.speedup:.2f} [{gain.ci95[0]:.2f}, {gain.ci95[1]:.2f}]"


def summary(found: Sequence[Applied]) -> str:
    """How many promises were made, and kept."""
    bounds = [one for one in found if one.promised and one.promised.basis == "at most"]
    sized = [one for one in found if one.promised is not None and one not in bounds]
    errors = [one.error for one in found if one.error is not None]
    middle = f"{median(errors):.1%}" if errors else "-"
    return (
        f"{len(sized)} of {len(found)} promised, {sum(one.kept for one in sized)} kept; median "
        f"error of the run's gain {middle}, goal {CLOSE:.0%}."
        + (f" {sum(one.kept for one in bounds)} of {len(bounds)} bounds held." if bounds else "")
    )


def markdown(found: Sequence[Applied], machine: str, rounds: int) -> str:
    """The table to commit."""
    rows = [
        "# What was promised, applied",
        "",
        f"`python -m benchmarks.applied --rounds {rounds}`. {machine}.",
        "Promised and obtained are of the whole run, from the start of Python to its exit.",
        "",
        "| script | promised | by | obtained | error | kept |",
        "|---|---|---|---|---|---|",
    ]
    for one in found:
        if one.promised is None:
            rows.append(f"| `{one.name}` | nothing | - | {one.obtained} | - | - |")
            continue
        error = "-" if one.error is None else f"{one.error:.1%}"
        rows.append(
            f"| `{one.name}` | {interval(one.promised)} | {_BY[one.promised.basis]} "
            f"| {one.obtained} | {error} | {'yes' if one.kept else 'no'} |"
        )
    return "\n".join([*rows, "", summary(found), ""])


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--rounds", type=click.IntRange(min=2), default=3, show_default=True)
@click.option("--budget", type=click.FloatRange(min=1), default=60.0, show_default=True)
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.argument("names", nargs=-1)
def main(rounds: int, budget: float, table: Path | None, names: tuple[str, ...]) -> None:
    """Run the scripts, print a line each, and the totals."""
    known = tomllib.loads(EDITS.read_text(encoding="utf-8"))
    if unknown := set(names) - set(known):
        raise click.UsageError(f"no script is called {', '.join(sorted(unknown))}")
    found: list[Applied] = []
    machine = ""
    with tempfile.TemporaryDirectory() as folder:
        for name in names or known:
            try:
                one, machine = apply(name, known[name], Path(folder), rounds, budget)
            except (RunFailedError, PipediagError) as error:
                click.echo(f"fail {name}: {error}")
                continue
            found.append(one)
            click.echo(line(one))
    click.echo(summary(found))
    if table is not None and found:
        table.write_text(markdown(found, machine, rounds), encoding="utf-8")
    sys.exit(not all(one.kept for one in found))


if __name__ == "__main__":
    main()
