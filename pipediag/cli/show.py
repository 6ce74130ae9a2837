"""`pipediag show`: a recorded session, on the terminal or in files."""

from __future__ import annotations

from pathlib import Path

import click

from pipediag.cli.common import newest_report, say
from pipediag.reporters import REPORTERS


def _formats(
    _ctx: click.Context, _option: click.Parameter, given: str | None
) -> tuple[str, ...] | None:
    """Return comma-separated names, each once, in the order given."""
    if given is None:
        return None
    names = tuple(dict.fromkeys(name.strip().lower() for name in given.split(",")))
    for name in names:
        if name not in REPORTERS:
            known = ", ".join(REPORTERS)
            raise click.BadParameter(f"there is no format {name!r}; the formats are {known}.")
    return names


@click.command(name="show")
@click.argument("session", metavar="[SESSION]", type=Path, required=False)
@click.option(
    "--format",
    "formats",
    metavar="NAMES",
    callback=_formats,
    help=f"Write files instead, comma-separated: {', '.join(REPORTERS)}.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the files.  [default: beside the session]",
)
@click.option("-v", "--verbose", is_flag=True, help="Print everything that was found.")
def command(
    session: Path | None, *, formats: tuple[str, ...] | None, output: Path | None, verbose: bool
) -> None:
    """Print the summary of a recorded session, or write its report with --format.

    SESSION is a session.json or its directory, by default the newest report below reports/.
    TensorFlow is not needed.
    """
    from pipediag.session.store import load_session

    session = session or newest_report()
    loaded = load_session(session)
    directory = session if session.is_dir() else session.parent
    if formats is not None:
        from pipediag.reporters import write_formats

        for path in write_formats(loaded, output or directory, formats):
            say(f"wrote {path}")
        return
    from rich.console import Console

    from pipediag.reporters.terminal.summary import render

    render(
        loaded,
        Console(),
        output_directory=directory,
        report_written=(directory / "report.html").is_file(),
        verbose=verbose,
    )
