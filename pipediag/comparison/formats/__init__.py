"""The forms in which `compare` prints: each module here is one, named as `--format` is.

It has a function `render`, from the comparison to text.
"""

from __future__ import annotations

from importlib import import_module

from pipediag.comparison.result import Comparison


def render(name: str, comparison: Comparison) -> str:
    """The comparison in the form of that name, one of the modules here."""
    rendered: str = import_module(f"{__name__}.{name}").render(comparison)
    return rendered
