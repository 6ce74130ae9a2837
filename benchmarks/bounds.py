"""Count the upper bounds that held: measured speed-ups of steps against `speedup_at_most`.

    python -m benchmarks.bounds DIR [--table FILE]

Reads the sessions that `python -m benchmarks.diagnosis --keep DIR` left. A bound is broken where
the whole measured interval lies above it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.machine import machine_of
from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.record import Interval
from pipediag.session.store import load_session


@dataclass(frozen=True)
class Bounded:
    """An edit that has a bound and was measured."""

    script: str
    edit: str
    state: str
    at_most: float
    measured: float
    ci95: Interval

    @property
    def held(self) -> bool:
        return self.ci95[0] <= self.at_most


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
def main(folder: Path, table: Path | None) -> None:
    """Print every bounded edit that was measured, and how many bounds held."""
    sessions = [load_session(path) for path in sorted(folder.rglob(SESSION_FILE))]
    edits = [edit for session in sessions for edit in bounded(session)]
    if not edits:
        raise click.ClickException("no session holds an edit with a bound that was measured")
    for edit in edits:
        click.echo(" ".join((edit.script, *cells(edit))))
    click.echo(summary(edits))
    if table is not None:
        machines = "; ".join(dict.fromkeys(machine_of(one.environment) for one in sessions))
        table.write_text(markdown(edits, machines), encoding="utf-8")


def bounded(session: Session) -> Iterator[Bounded]:
    """Edits of steps with a bound, each once; estimates and whole epochs are of something else."""
    seen: set[str] = set()
    for finding in session.findings:
        trial, edit = finding.trial, finding.edit
        if edit is None or edit.id in seen or finding.part != "steps" or trial.basis != "step":
            continue
        if finding.speedup_at_most is None or trial.speedup is None or trial.ci95 is None:
            continue
        seen.add(edit.id)
        script = Path(session.script.path).stem
        most = finding.speedup_at_most
        yield Bounded(script, edit.id, trial.state, most, trial.speedup, trial.ci95)


def summary(edits: Sequence[Bounded]) -> str:
    """How many held, and how much of the bound confirmed edits obtained, in one sentence."""
    held = sum(edit.held for edit in edits)
    gains = [edit for edit in edits if edit.state == "confirmed" and edit.at_most > 1.0]
    near = sum(edit.measured >= (1.0 + edit.at_most) / 2.0 for edit in gains)
    return (
        f"{held} of {len(edits)} bounds held; {near} of {len(gains)} confirmed edits obtained at "
        "least half of the gain that was possible."
    )


def markdown(edits: Sequence[Bounded], machine: str) -> str:
    """The machine, the summary, and a row an edit."""
    head = "| script | edit | at most | measured | trial | held |"
    rows = [f"| `{edit.script}` | " + " | ".join(cells(edit)) + " |" for edit in edits]
    return "\n".join([machine, "", summary(edits), "", head, "|" + "---|" * 6, *rows]) + "\n"


def cells(edit: Bounded) -> tuple[str, str, str, str, str]:
    """The edit, its bound, what was measured, the trial's state, and whether the bound held."""
    low, high = edit.ci95
    return (
        f"`{edit.edit}`",
        f"{edit.at_most:.2f}x",
        f"{edit.measured:.2f}x [{low:.2f}, {high:.2f}]",
        edit.state,
        "yes" if edit.held else "no",
    )


if __name__ == "__main__":
    main()
