"""`pipediag show`: the summary of a recorded session, as `analyze` printed it."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="show")
@click.argument("session", metavar="SESSION", type=Path)
@click.option("-v", "--verbose", is_flag=True, help="Everything that was found, at any length.")
@click.pass_context
def command(ctx: click.Context, session: Path, *, verbose: bool) -> None:
    """Print the summary of a recorded session, as `pipediag analyze` printed it.

    SESSION is a session.json or the directory that holds it. TensorFlow is not needed.
    """
    from rich.console import Console

    from pipediag.reporters.terminal.summary import render
    from pipediag.session.store import load_session

    loaded = load_session(session)
    directory = session if session.is_dir() else session.parent
    console = Console(force_terminal=True if ctx.color else None, no_color=ctx.color is False)
    render(
        loaded,
        console,
        output_directory=directory,
        report_written=(directory / "report.html").is_file(),
        verbose=verbose,
    )
