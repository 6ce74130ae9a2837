"""`pipediag show`: a recorded session, on the terminal or in files."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipediag.cli.common import newest_report, say
from pipediag.errors import PipediagError
from pipediag.reporters import REPORTERS
from pipediag.session.messages import TRACE_DIRECTORY

if TYPE_CHECKING:
    from pipediag.session.model import Session

TEXT, PERFETTO = "text", "perfetto"
FORMATS = (*REPORTERS, TEXT, PERFETTO)


@click.command(name="show")
@click.argument("sessions", metavar="[SESSION]...", type=Path, nargs=-1)
@click.option(
    "--format",
    "formats",
    type=click.Choice(FORMATS),
    multiple=True,
    help="Write a file instead; may be repeated.",
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
    formats: tuple[str, ...],
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

    given = sessions or _newest()
    of_job = sessions_of_job(given)
    if of_job:
        if formats:
            raise PipediagError("A job has no files. Name one worker's directory.")
        from pipediag.reporters.terminal.job import render_job

        render_job(of_job, Console())
        return
    [session] = given
    loaded = load_session(session)
    directory = session if session.is_dir() else session.parent
    wanted = formats or (TEXT,)
    if named := [name for name in wanted if name in REPORTERS]:
        from pipediag.reporters import write_formats

        for path in write_formats(loaded, output or directory, named):
            say(f"wrote {path}")
    if PERFETTO in wanted:
        say(f"wrote {_write_perfetto(loaded, directory, output or directory)}")
    if TEXT not in wanted:
        return
    from pipediag.reporters.terminal.summary import render

    render(
        loaded,
        Console(),
        output_directory=directory,
        report_written=(directory / "report.html").is_file(),
        verbose=verbose,
    )


def _write_perfetto(session: Session, directory: Path, output: Path) -> Path:
    """Write the profile of the diagnosed loop, beside its session, for ui.perfetto.dev."""
    from pipediag.cli.trace import PERFETTO_FILE, read_profiles
    from pipediag.reporters.perfetto import write_perfetto

    loop, own = session.diagnosed_loop(), directory / TRACE_DIRECTORY
    if loop is not None and (own / loop.id).is_dir():
        own = own / loop.id
    # Reports of other runs may lie below, such as that of the patched script.
    read, _ = read_profiles([own if own.is_dir() else directory])
    write_perfetto(output / PERFETTO_FILE, read)
    return output / PERFETTO_FILE


def _newest() -> tuple[Path, ...]:
    """Return the newest session, or all of its job."""
    from pipediag.session.store import load_session
    from pipediag.session.worker import WORKER_NAME

    newest = newest_report()
    # A run alone may have been named after a worker.
    of_job = WORKER_NAME.fullmatch(newest.parent.name)
    if not of_job or load_session(newest).environment.worker is None:
        return (newest,)
    others = newest.parent.parent.glob(f"*/{newest.name}")
    return tuple(sorted(one for one in others if WORKER_NAME.fullmatch(one.parent.name)))


def sessions_of_job(given: tuple[Path, ...]) -> list[Path]:
    """Return the sessions of a job's workers; none where one session is meant.

    Raises PipediagError: all are runs that `compare` made.
    """
    from pipediag.session.store import session_paths

    found = [run for one in given for run in session_paths(one)]
    # Runs that `compare` made are no workers.
    found = [run for run in found if run in given or not run.name.startswith("run-")]
    if not found:
        paths = shlex.join(map(str, given))
        raise PipediagError(
            f"{paths}: runs of a version, and no job. `pipediag compare BASE HEAD` compares those "
            "of two versions; to see one of them, name its own directory."
        )
    return [] if found == [*given[:1]] else found
