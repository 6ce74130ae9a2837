"""How near predicted speed-ups come to measured ones, for every edit that was tried.

    python -m benchmarks.prediction [--sessions DIR] [--budget S] [--table FILE] [NAME...]

Reads the sessions that `python -m benchmarks.diagnosis --keep DIR` left, or runs the labelled
scripts itself. The error of an edit is |predicted / measured - 1|.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.diagnosis import labelled, run
from benchmarks.machine import machine_of
from benchmarks.samples import RunFailedError
from pipediag.forecast import likely_range
from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.store import load_session

QUANTILES = (0.25, 0.5, 0.75, 0.9, 1.0)
CONFIRMED = 1.03
"""Pipediag's own limit: a trial confirms an edit whose interval lies above it."""


@dataclass(frozen=True)
class TriedEdit:
    """One edit that a trial measured."""

    script: str
    edit: str
    state: str
    predicted: float | None
    """None where the rule makes no prediction."""
    measured: float
    ci95: tuple[float, float] | None

    @property
    def error(self) -> float | None:
        """|predicted / measured - 1|, or None without a prediction."""
        return None if self.predicted is None else abs(self.predicted / self.measured - 1)

    @property
    def inside(self) -> bool | None:
        """Whether the prediction lies inside the measured interval; None without either."""
        if self.predicted is None or self.ci95 is None:
            return None
        return self.ci95[0] <= self.predicted <= self.ci95[1]

    @property
    def likely(self) -> bool | None:
        """Whether the measurement lies in the range that reports say; None without a prediction."""
        if self.predicted is None:
            return None
        low, high = likely_range(self.predicted)
        return low <= self.measured <= high

    @property
    def half_width(self) -> float | None:
        """Half the measured interval over what was measured, or None without an interval."""
        return (self.ci95[1] - self.ci95[0]) / 2 / self.measured if self.ci95 else None

    @property
    def wrong_sign(self) -> bool:
        """Whether an edit was confirmed of which no gain was predicted."""
        return self.state == "confirmed" and self.predicted is not None and self.predicted <= 1

    @property
    def promised(self) -> bool:
        """Whether an edit was refuted of which a gain was predicted that trials would confirm."""
        gain = self.predicted is not None and self.predicted > CONFIRMED
        return self.state == "refuted" and gain


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option(
    "--sessions",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Read the session.json files below this directory in place of running anything.",
)
@click.option("--budget", type=click.FloatRange(min=1), default=30.0, show_default=True)
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.argument("names", nargs=-1)
def main(sessions: Path | None, budget: float, table: Path | None, names: tuple[str, ...]) -> None:
    """Print every tried edit, then the errors."""
    every = list(read(sessions, names) if sessions is not None else runs(names, budget))
    edits = [edit for session in every for edit in tried(session)]
    for edit in edits:
        click.echo(line(edit))
    for sentence in summary(edits):
        click.echo(sentence)
    if table is not None and every:
        machines = dict.fromkeys(machine_of(session.environment) for session in every)
        table.write_text(markdown(edits, "; ".join(machines)), encoding="utf-8")
    if not edits:
        raise click.ClickException("no session holds an edit that was measured")


def read(folder: Path, names: tuple[str, ...]) -> Iterable[Session]:
    """The sessions below a directory, of the named scripts or of all."""
    for path in sorted(folder.rglob(SESSION_FILE)):
        session = load_session(path)
        if not names or Path(session.script.path).stem in names:
            yield session


def runs(names: tuple[str, ...], budget_s: float) -> Iterable[Session]:
    """A fresh session of each labelled script; one that fails is said and left out."""
    for expected in labelled(names):
        try:
            yield run(expected, budget_s, None)
        except RunFailedError as error:
            click.echo(f"{expected.name}: {error}", err=True)


def tried(session: Session) -> list[TriedEdit]:
    """The edits of a session that have a measured speed-up, each once.

    Two findings may propose the same edit; the first one's prediction counts.
    """
    found: dict[str, TriedEdit] = {}
    for finding in session.findings:
        if finding.trial.speedup is None:
            continue
        edit = TriedEdit(
            script=Path(session.script.path).stem,
            edit=finding.edit.id if finding.edit else finding.rule,
            state=finding.trial.state,
            predicted=finding.predicted_speedup,
            measured=finding.trial.speedup,
            ci95=finding.trial.ci95,
        )
        found.setdefault(edit.edit, edit)
    return list(found.values())


def summary(edits: Sequence[TriedEdit]) -> list[str]:
    """The errors' quantiles, and how often the sign was wrong, one sentence each."""
    errors = [edit.error for edit in edits if edit.error is not None]
    confirmed = [edit for edit in edits if edit.state == "confirmed"]
    sentences = [
        f"{len(edits)} edits were measured: {len(confirmed)} confirmed, "
        f"{_count(edits, 'refuted')} refuted, {_count(edits, 'inconclusive')} inconclusive; "
        f"{len(edits) - len(errors)} had no prediction."
    ]
    if errors:
        at = ", ".join(
            f"{100 * quantile:g} %: {value:.2f}"
            for quantile, value in zip(QUANTILES, np.quantile(errors, QUANTILES), strict=True)
        )
        sentences.append(f"Error |predicted / measured - 1|: median {np.median(errors):.2f} ({at})")
    predicted = [edit for edit in confirmed if edit.predicted is not None]
    sentences.append(
        f"Wrong signs: {sum(e.wrong_sign for e in confirmed)} of {len(predicted)} confirmed edits "
        "with a prediction had none of a gain."
    )
    sentences.append(
        f"Promised and refuted: {sum(edit.promised for edit in edits)} of "
        f"{_count(edits, 'refuted')} refuted edits."
    )
    inside = [edit.inside for edit in edits if edit.inside is not None]
    widths = [edit.half_width for edit in edits if edit.half_width is not None]
    if inside:
        sentences.append(
            f"Inside the measured interval: {sum(inside)} of {len(inside)} predictions; half of "
            f"an interval's width is {np.median(widths):.2f} of what was measured (median)."
        )
    likely = [edit.likely for edit in edits if edit.likely is not None]
    if likely:
        sentences.append(
            f"Inside the predicted range: {sum(likely)} of {len(likely)} measurements."
        )
    return sentences


def markdown(edits: Sequence[TriedEdit], machine: str) -> str:
    """The machine, the summary, and a row an edit."""
    head = "| script | edit | predicted | measured | trial | error |"
    rows = [f"| `{edit.script}` | " + " | ".join(_cells(edit)) + " |" for edit in edits]
    return "\n".join([machine, "", *summary(edits), "", head, "|" + "---|" * 6, *rows]) + "\n"


def line(edit: TriedEdit) -> str:
    """One edit for the terminal."""
    what, predicted, measured, state, error = _cells(edit)
    return f"{edit.script}: {what} predicted {predicted}, measured {measured}, {state} {error}"


def _cells(edit: TriedEdit) -> tuple[str, str, str, str, str]:
    low_high = f" [{edit.ci95[0]:.2f}, {edit.ci95[1]:.2f}]" if edit.ci95 else ""
    return (
        f"`{edit.edit}`",
        "-" if edit.predicted is None else f"{edit.predicted:.2f}x",
        f"{edit.measured:.2f}x{low_high}",
        edit.state,
        "-" if edit.error is None else f"{edit.error:.2f}",
    )


def _count(edits: Sequence[TriedEdit], state: str) -> int:
    return sum(edit.state == state for edit in edits)


if __name__ == "__main__":
    main()
