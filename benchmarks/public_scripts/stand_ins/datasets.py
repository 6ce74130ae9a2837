"""Stands in for Hugging Face's datasets where there is no network: made rows of the same form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

ROWS, NUMBERS, CATEGORIES = 20_000, 13, 26


def load_dataset(_name: str) -> dict[str, Any]:
    """Clicks: a label, thirteen numbers and twenty-six categories a row."""
    return {"train": _Clicks()}


class _Clicks:
    """Rows as dictionaries of Python's own numbers, made one by one as the real ones are."""

    def __init__(self) -> None:
        rng = np.random.default_rng(22)
        columns = {"label": rng.integers(2, size=ROWS)}
        columns |= {f"I{n}": rng.random(ROWS) for n in range(1, NUMBERS + 1)}
        columns |= {f"C{n}": rng.zipf(1.2, ROWS) % 2**31 for n in range(1, CATEGORIES + 1)}
        self._columns = columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in range(ROWS):
            yield {name: values[row].item() for name, values in self._columns.items()}
