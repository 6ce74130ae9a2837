"""`pipediag show`: a recorded session, on the terminal or in files."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from pipediag.cli.common import say
from pipediag.reporters import REPORTERS


class Formats(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """Comma-separated names, each once, in the order given."""

    name = "formats"

    def convert(
        self,
        value: str | tuple[str, ...],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(name.strip().lower() for name in value.split(",")))
        for name in names:
            if name not in REPORTERS:
                known = ", ".join(REPORTERS)
                self.fail(f"there is no format {name!r}; the formats are {known}.", param, ctx)
        return names

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Names that are not there yet, behind the last comma."""
        before, comma, begun = incomplete.rpartition(",")
        named = before.split(",")
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in REPORTERS
            if name.startswith(begun.lower()) and name not in named
        ]


@click.command(name="show")
@click.argument("session", metavar="SESSION", type=Path)
@click.option(
    "--format",
    "formats",
    metavar="NAMES",
    type=Formats(),
    help=f"Write files instead; comma-separated: {', '.join(REPORTERS)}.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where --format writes.  [default: beside the session]",
)
@click.option("-v", "--verbose", is_flag=True, help="Everything that was found, at any length.")
def command(
    session: Path,
    *,
    formats: tuple[str, ...] | None,
    output: Path | None,
    verbose: bool,
) -> None:
    """Print the summary of a recorded session, or write its report again with --format.

    SESSION is a session.json or the directory that holds it. TensorFlow is not needed.
    """
    from pipediag.session.store import load_session

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
