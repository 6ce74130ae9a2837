"""`pipediag show`: a recorded session, on the terminal or in files."""

from __future__ import annotations

from pathlib import Path

import click

from pipediag.cli.common import newest_report, say
from pipediag.errors import PipediagError
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
@click.argument("sessions", metavar="[SESSION]...", type=Path, nargs=-1)
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
    sessions: tuple[Path, ...],
    *,
    formats: tuple[str, ...] | None,
    output: Path | None,
    verbose: bool,
) -> None:
    """Print the summary of a recorded session, or write its report with --format.

    SESSION is a session.json or its directory, by default the newest report below reports/. Of
    several, or of a directory with one for each worker of a job, the job is summarised: which
    worker the others wait for, and why. TensorFlow is not needed.
    """
    from rich.console import Console

    from pipediag.session.store import load_session

    given = sessions or (newest_report(),)
    of_job = sessions_of_job(given)
    if of_job:
        if formats is not None:
            raise PipediagError("--format is for one session. Name the directory of one worker.")
        from pipediag.reporters.terminal.job import render_job

        render_job(of_job, Console())
        return
    [session] = given
    loaded = load_session(session)
    directory = session if session.is_dir() else session.parent
    if formats is not None:
        from pipediag.reporters import write_formats

        for path in write_formats(loaded, output or directory, formats):
            say(f"wrote {path}")
        return
    from pipediag.reporters.terminal.summary import render

    render(
        loaded,
        Console(),
        output_directory=directory,
        report_written=(directory / "report.html").is_file(),
        verbose=verbose,
    )


def sessions_of_job(given: tuple[Path, ...]) -> list[Path]:
    """Return the sessions of a job's workers; none where one session is meant."""
    from pipediag.session.files import SESSION_FILE

    if len(given) > 1:
        return list(given)
    [directory] = given
    if not directory.is_dir() or (directory / SESSION_FILE).is_file():
        return []
    # Runs that `compare` made are no workers.
    found = (file.parent for file in directory.glob(f"*/{SESSION_FILE}"))
    return sorted(one for one in found if not one.name.startswith("run-"))
