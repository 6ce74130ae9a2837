"""The forms in which `check` prints its results: each module here is one, named as `--format` is.

It has a function `render`, from the results to text.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module

from pipediag.gate.result import GateResult

NAMES = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def render(name: str, results: Sequence[GateResult]) -> str:
    """The results in the form of that name, one of `NAMES`."""
    rendered: str = import_module(f"{__name__}.{name}").render(results)
    return rendered
