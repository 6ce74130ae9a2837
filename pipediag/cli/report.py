"""`pipediag report`: write a recorded session's report again, in the formats asked for."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from pipediag.cli.say import say
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


@click.command(name="report")
@click.argument("session", metavar="SESSION", type=Path)
@click.option(
    "--format",
    "formats",
    metavar="NAMES",
    type=Formats(),
    default="html,csv",
    show_default=True,
    help=f"Comma-separated: {', '.join(REPORTERS)}.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write. Default: beside the session.",
)
def command(session: Path, formats: tuple[str, ...], output: Path | None) -> None:
    """Write the report of a recorded session again.

    SESSION is a session.json or the directory that holds it. TensorFlow is not needed.
    """
    from pipediag.reporters import write_formats
    from pipediag.session.store import load_session

    loaded = load_session(session)
    directory = output or (session if session.is_dir() else session.parent)
    for path in write_formats(loaded, directory, formats):
        say(f"wrote {path}")
