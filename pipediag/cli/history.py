"""`pipediag history`: keep sessions over time, and say when something moved."""

from __future__ import annotations

import os
import pkgutil
from itertools import chain
from pathlib import Path

import click

from pipediag.cli.format_option import format_option
from pipediag.cli.say import deliver, say
from pipediag.errors import PipediagError

_COMMITS = ("GITHUB_SHA", "CI_COMMIT_SHA")
"""Where GitHub Actions and GitLab CI say which commit is built."""

_FORMATS = Path(__file__).parents[1] / "history" / "formats"
# By their files: importing them would make `--help` wait for all that a history needs.
FORMAT_NAMES = tuple(sorted(module.name for module in pkgutil.iter_modules([str(_FORMATS)])))

FILE = click.option(
    "--file",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("pipediag-history.sqlite"),
    show_default=True,
    help="The history: one SQLite file.",
)


@click.group(name="history")
def command() -> None:
    """Keep sessions in one file, and say when a metric moved and with which commit."""


@command.command(name="add")
@click.argument("sessions", metavar="SESSION...", nargs=-1, required=True, type=Path)
@click.option("--commit", metavar="NAME", help="What was measured.  [default: that of the CI]")
@FILE
def add(sessions: tuple[Path, ...], commit: str | None, file: Path) -> None:
    """Add sessions to the history. One that is in it already is passed over."""
    from pipediag.history.store import opened
    from pipediag.session.repeats import session_paths
    from pipediag.session.store import load_session

    paths = [run for path in sessions for run in session_paths(path)]
    named = commit or next(filter(None, map(os.environ.get, _COMMITS)), None)
    # One after the other, as all of them may be too large to be held at once; the first before the
    # file is made.
    rest = (load_session(path) for path in paths)
    loaded = chain(iter([next(rest)]), rest)
    added = 0
    with opened(file, create=True) as history:
        try:
            for session in loaded:
                added += history.add(session, named)
        except PipediagError as error:
            raise PipediagError(
                f"{error} Of {len(paths)} sessions, {added} were added to {file} before it."
            ) from error
    known = len(paths) - added
    rest_said = f"; {known} {'was' if known == 1 else 'were'} in it already" if known else ""
    say(f"pipediag: {added} of {len(paths)} sessions added to {file}{rest_said}")


@command.command(name="show")
@FILE
@format_option(FORMAT_NAMES, "Form of it; html is one page.")
def show(file: Path, format_name: str) -> None:
    """Draw each metric over time, for each script and machine, and name where it moved."""
    from pipediag.history.formats import render
    from pipediag.history.store import opened

    with opened(file, create=False) as history:
        found = history.series()
    deliver(render(format_name, found))
