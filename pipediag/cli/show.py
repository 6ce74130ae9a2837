"""`pipediag show`: a recorded session, on the terminal or in files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipediag.cli.common import newest_report, say
from pipediag.errors import PipediagError
from pipediag.reporters import REPORTERS

if TYPE_CHECKING:
    from rich.console import Console

    from pipediag.session.model import Session

TEXT, PERFETTO = "text", "perfetto"
FORMATS = (*REPORTERS, TEXT, PERFETTO)
_DURATION = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*(ms|s)\s*")


def _formats(
    _ctx: click.Context, _option: click.Parameter, given: str | None
) -> tuple[str, ...] | None:
    """Return comma-separated names, each once, in the order given."""
    if given is None:
        return None
    names = tuple(dict.fromkeys(name.strip().lower() for name in given.split(",")))
    for name in names:
        if name not in FORMATS:
            known = ", ".join(FORMATS)
            raise click.BadParameter(f"there is no format {name!r}; the formats are {known}.")
    return names


def _duration_ms(_ctx: click.Context, _option: click.Parameter, given: str | None) -> float | None:
    """Return a duration in milliseconds: `40ms`, `0.04s`."""
    if given is None:
        return None
    found = _DURATION.fullmatch(given)
    ms = float(found[1]) * (1.0 if found[2] == "ms" else 1e3) if found else 0.0
    if ms <= 0.0:
        raise click.BadParameter(f"{given[:32]!r} is no duration. Write 40ms or 0.04s.")
    return ms


@click.command(name="show")
@click.argument("sessions", metavar="[SESSION]...", type=Path, nargs=-1)
@click.option(
    "--format",
    "formats",
    metavar="NAMES",
    callback=_formats,
    help=f"Write files instead, comma-separated: {', '.join(FORMATS)}.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the files.  [default: beside the session]",
)
@click.option(
    "--target-step",
    "target_ms",
    metavar="TIME",
    callback=_duration_ms,
    help="Print what a tf.data service takes for a step of this time, such as 40ms.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print everything that was found.")
def command(
    sessions: tuple[Path, ...],
    *,
    target_ms: float | None,
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
        if target_ms is not None:
            raise PipediagError("--target-step is for the session of one process that trains.")
        beside = given[0] if given[0].is_dir() else given[0].parent
        _show_job(of_job, Console(), formats, output or beside)
        return
    [session] = given
    loaded = load_session(session)
    directory = session if session.is_dir() else session.parent
    if target_ms is not None:
        _show_plan(loaded, target_ms)
        return
    wanted = formats or (TEXT,)
    if named := [name for name in wanted if name in REPORTERS]:
        from pipediag.reporters import write_formats

        for path in write_formats(loaded, output or directory, named):
            say(f"wrote {path}")
    if PERFETTO in wanted:
        say(f"wrote {_write_perfetto(directory, output or directory)}")
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


def _write_perfetto(directory: Path, output: Path) -> Path:
    """Write the profile beside a session for ui.perfetto.dev."""
    from pipediag.cli.trace import PERFETTO_FILE, read_profiles
    from pipediag.reporters.perfetto import write_perfetto

    read, _ = read_profiles([directory])
    write_perfetto(output / PERFETTO_FILE, read)
    return output / PERFETTO_FILE


def _show_plan(session: Session, target_ms: float) -> None:
    from pipediag.facts.service import plan_service
    from pipediag.reporters.words.pipeline import workers_needed

    plan = plan_service(session, target_ms)
    if plan is None:
        raise PipediagError(
            "The session has no times of a tf.data service. They are measured as its edit is "
            "tried, where a loop waits for input that other hosts can make and time is left: "
            "`pipediag explain input-service`."
        )
    say(workers_needed(session, plan), err=False)


def _show_job(
    directories: list[Path], console: Console, formats: tuple[str, ...] | None, output: Path
) -> None:
    from pipediag.reporters.terminal.job import render_job, workers_table
    from pipediag.session.files import write_bytes

    if formats is None:
        render_job(directories, console)
        return
    if formats != ("csv",):
        raise PipediagError("Of a job there is --format csv. Name one worker's directory for more.")
    file = output / "workers.csv"
    write_bytes(file, workers_table(directories))
    say(f"wrote {file}")


def sessions_of_job(given: tuple[Path, ...]) -> list[Path]:
    """Return the sessions of a job's workers; none where one session is meant."""
    from pipediag.session.store import session_paths

    if len(given) > 1:
        return list(given)
    # Runs that `compare` made are no workers.
    found = session_paths(given[0], most=None)
    found = [one for one in found if not one.name.startswith("run-")]
    return [] if found == [given[0]] else found
