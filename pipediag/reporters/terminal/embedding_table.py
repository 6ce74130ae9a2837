"""The embedding tables of a run, and what they cost, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipediag.facts.memory_plan import MemoryPlan
from pipediag.reporters.words import embedding_rows as words
from pipediag.reporters.words import memory_words, step_parts
from pipediag.reporters.words.quantities import byte_count, milliseconds, number, percent
from pipediag.session.embedding_cost import EmbeddingCost
from pipediag.session.embeddings import Embedding


def embedding_table(tables: list[Embedding], shown: int) -> Iterator[RenderableType]:
    """The largest tables, a row each and what more is known of each; nothing where there are none
    or no room for them."""
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
    for table in tables[:shown]:
        if known := words.details(table):
            yield Text(f"  {table.layer}: {known}", no_wrap=True, overflow="ellipsis")
        for said in words.wrong(table):
            yield Text(f"  {table.layer}: {said}", "red", no_wrap=True, overflow="ellipsis")
        if table.ids is not None and table.ids.incomplete:
            yield Text(f"  {table.layer}: {table.ids.incomplete}", "dim")


def memory_lines(plan: MemoryPlan | None, shown: int) -> Iterator[RenderableType]:
    """Yield what training takes of memory, and what changes of the largest table would save."""
    if plan is None or not shown:
        return
    yield Text()
    yield Text("Memory", "bold")
    yield Padding(Text(memory_words.needed(plan)), (0, 0, 0, 2))
    if not plan.alternatives:
        return
    table = plan.tables[0]
    yield Text(f"  {table.layer} takes {byte_count(table.peak_bytes)}; each change alone leaves:")
    grid = Table.grid(padding=(0, 2))
    for one in plan.alternatives:
        left = Text(byte_count(one.device_bytes), justify="right")
        grid.add_row(f"    {one.what}", left, Text(one.note, no_wrap=True, overflow="ellipsis"))
    yield grid


def cost_table(cost: EmbeddingCost | None, tables: int) -> Iterator[RenderableType]:
    """The largest parts of the step's compute; nothing without them, or with no room for tables."""
    if cost is None or not tables:
        return
    shown = cost.parts[: tables + 2]
    yield Text()
    left = len(cost.parts) - len(shown)
    more = f"; {left} smaller in the report" if left else ""
    yield Text(f"Compute of a step, {milliseconds(cost.compute_ms)}, by part{more}", "bold")
    grid = Table.grid(padding=(0, 2))
    for part in shown:
        grid.add_row(
            f"  {step_parts.name(part)}",
            Text(milliseconds(part.ms), justify="right"),
            Text(percent(part.percent), justify="right"),
            Text(part.layer or "", no_wrap=True, overflow="ellipsis"),
        )
    yield grid
    for said in step_parts.fused(cost):
        yield Text(f"  {said}", "dim", no_wrap=True, overflow="ellipsis")
