"""The option that says in which form a command writes what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def format_option(names: Sequence[str], text: str) -> Decorator:
    """`--format`, one of `names` and text by default, handed over as `format_name`."""
    return click.option(
        "--format",
        "format_name",
        type=click.Choice(names),
        default="text",
        show_default=True,
        help=text,
    )
