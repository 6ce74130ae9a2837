"""The embedding tables of a run on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pipediag.reporters.words import embedding_rows as words
from pipediag.reporters.words.quantities import byte_count, number
from pipediag.session.embeddings import Embedding


def embedding_table(tables: list[Embedding], shown: int) -> Iterator[RenderableType]:
    """The largest tables, a row each; nothing where there are none or no room for them."""
    if not tables or not shown:
        return
    yield Text()
    more = f"; {len(tables) - shown} more in the report" if len(tables) > shown else ""
    yield Text(f"Embeddings: bytes with slots, what a step updates, rows of lookups{more}", "bold")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, overflow="ellipsis", ratio=3)
    for table in tables[:shown]:
        grid.add_row(
            f"  {table.layer}",
            Text(f"{number(table.rows)} x {number(table.dim)}", justify="right"),
            Text(byte_count(table.table_bytes + (table.slot_bytes or 0)), justify="right"),
            words.update(table),
            Text(words.rows_touched(table), justify="right"),
        )
    yield grid
