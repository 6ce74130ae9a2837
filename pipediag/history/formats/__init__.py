"""The forms in which `history show` prints: each module here is one, named as `--format` is.

It has a function `render`, from the series of a history to text.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from pipediag.history.store import Series


def render(name: str, found: Sequence[Series]) -> str:
    """The history in the form of that name, one of the modules here."""
    rendered: str = import_module(f"{__name__}.{name}").render(found)
    return rendered
