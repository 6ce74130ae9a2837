"""`pipediag compare`: hold the sessions of one version against those of another."""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipediag.cli.format_option import format_option
from pipediag.cli.gate_config import load_gate_config
from pipediag.cli.say import deliver, say
from pipediag.cli.width import fitted

if TYPE_CHECKING:
    from pipediag.session.model import Session

_FORMATS = Path(__file__).parents[1] / "comparison" / "formats"
# By their files: importing them would make `--help` wait for all that a comparison needs.
FORMAT_NAMES = tuple(sorted(module.name for module in pkgutil.iter_modules([str(_FORMATS)])))


@click.command(name="compare")
@click.argument("base", type=Path)
@click.argument("head", type=Path)
@click.option(
    "--base",
    "more_base",
    metavar="SESSION",
    type=Path,
    multiple=True,
    help="Another run of BASE; can be given several times.",
)
@click.option(
    "--head",
    "more_head",
    metavar="SESSION",
    type=Path,
    multiple=True,
    help="Another run of HEAD; can be given several times.",
)
@click.option(
    "--ratios-only",
    is_flag=True,
    help="Compare shares of the step and of the run alone, which carry over to other machines.",
)
@click.option(
    "--max-slowdown",
    metavar="PERCENT",
    type=click.FloatRange(min=0, max=1000, min_open=True),
    help="The smallest slow-down that counts.  [default: as configured, or else 5; 25 between "
    "single runs]",
)
@format_option(FORMAT_NAMES, "Form of the result.")
@click.option("--allow-inconclusive", is_flag=True, help="End with 0, not 4, if undecided.")
@click.pass_context
def command(
    ctx: click.Context,
    *,
    base: Path,
    head: Path,
    more_base: tuple[Path, ...],
    more_head: tuple[Path, ...],
    ratios_only: bool,
    max_slowdown: float | None,
    format_name: str,
    allow_inconclusive: bool,
) -> None:
    """Say whether HEAD is slower than BASE, and what grew.

    Each is a session.json, the directory that holds it, or a directory of runs as `analyze
    --repeats` makes it. With three runs of each, what differs from run to run is told from what the
    change did.

    `max-slowdown-percent` and `allow-inconclusive` in [tool.pipediag] hold here too, as for `check
    --baseline`.

    Exit status: 0 no slower, 1 slower, 2 usage, unreadable input or another machine, 3 a script
    failed before enough steps were seen, 4 inconclusive.
    """
    from pipediag.comparison import compare
    from pipediag.comparison.formats import render
    from pipediag.errors import ExitStatus

    config = load_gate_config(None).override(allow_inconclusive=allow_inconclusive)
    comparison = compare(
        _load((base, *more_base)),
        _load((head, *more_head)),
        labels=(str(base), str(head)),
        ratios_only=ratios_only,
        floor_percent=max_slowdown or config.max_slowdown_percent,
    )
    text = render(format_name, comparison)
    deliver(fitted(text, sys.stdout) if format_name == "text" else text)
    status = comparison.status
    if status is ExitStatus.INCONCLUSIVE and config.allow_inconclusive:
        status = ExitStatus.DONE
    ctx.exit(status.value)


def _load(paths: tuple[Path, ...]) -> list[Session]:
    from pipediag.session.repeats import load_runs

    return [session for _, session in load_runs(paths, tell=say)]
