"""A share as a bar that is as long as there is room for it."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from pipediag.reporters.html.charts import bar_cells

_MOST_CELLS = 20
_FEWEST_CELLS = 5


class ShareBar:
    """In a column of a table: shorter in a narrow terminal, and never cut off."""

    def __init__(self, percent: float) -> None:
        self._percent = percent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = min(_MOST_CELLS, options.max_width)
        filled = bar_cells(self._percent, cells)
        yield Text.assemble("█" * filled, ("·" * (cells - filled), "dim"))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(_FEWEST_CELLS, _MOST_CELLS)
