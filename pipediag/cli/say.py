"""What commands print: the only place that writes to the terminal, besides the reporters."""

from __future__ import annotations

import sys

import click

from pipediag.encoding.terminal import printable


def say(message: str, *, err: bool = True) -> None:
    """Prints a message of ours, in which a path or a text of a session may stand.

    Args:
        message: its line ends are ours; every other character that acts is spelled out.
        err: whether it goes to standard error.
    """
    deliver(printable(message) + "\n", err=err)


def deliver(text: str, *, err: bool = False) -> None:
    """Prints what an encoder has made for its medium already, as it is.

    A stream that cannot hold it, such as one in ASCII, is given UTF-8.
    """
    stream = sys.stderr if err else sys.stdout
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        click.echo(text.encode(), nl=False, err=err)
    else:
        click.echo(text, nl=False, err=err)
