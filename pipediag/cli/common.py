"""Helpers of several commands: printing, widths, formats, configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from pipediag.encoding import printable
from pipediag.errors import PipediagError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipediag.gate.config import GateConfig
    from pipediag.gate.result import GateResult

FORMATS = ("github", "json", "junit", "markdown", "text")
"""Formats of `pipediag.gate.result`; importing that would delay `--help`."""

NARROWEST = 30
"""Columns below which an indented paragraph would have one word a line."""


def say(message: str, *, err: bool = True) -> None:
    """Print a message, with characters spelled out that a terminal would obey or hide."""
    deliver(printable(message) + "\n", err=err)


def deliver(text: str, *, err: bool = False) -> None:
    """Print text that is safe already, as UTF-8 if the stream's encoding cannot hold it."""
    stream = sys.stderr if err else sys.stdout
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        click.echo(text.encode(), nl=False, err=err)
    else:
        click.echo(text, nl=False, err=err)


def text_width(stream: TextIO, most: int) -> int:
    """Return the columns for running text on a stream; `most` if it is no terminal."""
    from pipediag.runner.progress import columns

    return max(NARROWEST, min(most, columns(stream))) if stream.isatty() else most


format_option = click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Format of the result; json is one line for each script.",
)


def newest_report() -> Path:
    """Return the newest session below reports/, which may be a worker's, and say where it is.

    Raises PipediagError: there is none.
    """
    from pipediag.facts.names import REPORTS
    from pipediag.session.files import SESSION_FILE
    from pipediag.session.worker import WORKER_NAME

    found = list(Path(REPORTS).glob(f"*/{SESSION_FILE}"))
    of_jobs = Path(REPORTS).glob(f"*/*/{SESSION_FILE}")
    found += [file for file in of_jobs if WORKER_NAME.fullmatch(file.parent.name)]
    if not found:
        raise PipediagError(
            f"There is no report below {REPORTS}/. Name a session.json, or the directory that "
            "`pipediag analyze` wrote."
        )
    newest = max(found, key=lambda file: file.stat().st_mtime)
    say(f"pipediag: the newest report is in {newest.parent}")
    return newest


def load_gate_config(path: Path | None) -> GateConfig:
    """Read the configuration from `path`, or from the nearest pyproject.toml.

    Raises PipediagError: it cannot be read, or names a key or a rule that does not exist.
    """
    from pipediag.gate.config import load_config
    from pipediag.rules.registry import BY_ID

    return load_config(path, list(BY_ID))


def show_results(
    results: Sequence[GateResult], format_name: str = "text", *, err: bool = False
) -> None:
    """Print results of the gate."""
    from pipediag.gate.result import render

    deliver(render(format_name, results), err=err)
