"""Count the upper bounds that held: measured speed-ups of steps against `speedup_at_most`.

    python -m benchmarks.bounds DIR

Reads the sessions that `python -m benchmarks.diagnosis --keep DIR` left. A bound is broken where
the whole measured interval lies above it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.store import load_session


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path) -> None:
    """Print every bounded edit that was measured, and how many bounds held."""
    bounds = [
        bound
        for path in sorted(folder.rglob(SESSION_FILE))
        for bound in measured_bounds(load_session(path))
    ]
    if not bounds:
        raise click.ClickException("no session holds an edit with a bound that was measured")
    for sentence, _ in bounds:
        click.echo(sentence)
    click.echo(f"{sum(held for _, held in bounds)} of {len(bounds)} bounds held.")


def measured_bounds(session: Session) -> Iterator[tuple[str, bool]]:
    """Yield each measured edit of steps that has a bound, in words, and whether the bound held."""
    seen: set[str] = set()
    for finding in session.findings:
        trial, edit, at_most = finding.trial, finding.edit, finding.speedup_at_most
        if edit is None or edit.id in seen or finding.part != "steps" or trial.basis != "step":
            continue
        if at_most is None or trial.speedup is None or trial.ci95 is None:
            continue
        seen.add(edit.id)
        low, high = trial.ci95
        held = low <= at_most
        name = f"{'held' if held else 'BROKEN'} {Path(session.script.path).stem} {edit.id}"
        measured = f"{trial.speedup:.2f}x [{low:.2f}, {high:.2f}], {trial.state}"
        yield f"{name}: at most {at_most:.2f}x, measured {measured}", held


if __name__ == "__main__":
    main()
