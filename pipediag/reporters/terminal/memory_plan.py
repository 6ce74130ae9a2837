"""A memory plan on the terminal: what is needed, the tables, the ways out, their times."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipediag.reporters.terminal.encoded import Encoded, held, prose
from pipediag.reporters.words import memory_words, way_words
from pipediag.reporters.words.quantities import (
    NOTHING,
    byte_count,
    duration,
    number,
    percent,
)
from pipediag.session.memory_plan import MemoryPlan, TablePlan, WayOut

_MAX_WIDTH = 120
_TABLES_WITH_WAYS = 3


def render(plan: MemoryPlan, console: Console, *, verbose: bool = False) -> None:
    """Prints a plan.

    Args:
        plan: what is printed.
        console: where to.
        verbose: shows the ways out of every table, not of the largest alone.
    """
    width = min(console.width, _MAX_WIDTH)
    shown = plan.tables if verbose else plan.tables[:_TABLES_WITH_WAYS]
    console.print(Encoded(Group(*_sections(plan, shown))), width=width, highlight=False)


def _sections(plan: MemoryPlan, shown: list[TablePlan]) -> Iterator[RenderableType]:
    yield _headline(plan)
    yield _prose(
        memory_words.ON_TOP
        + (
            f" As far as the run was seen, its process took {byte_count(plan.process_peak_bytes)} "
            "of the host at its peak, all included."
            if plan.process_peak_bytes
            else ""
        )
    )
    yield Text()
    yield Text("In memory", "bold")
    yield _parts(plan)
    yield _prose(memory_words.together(plan))
    if plan.rest_missing:
        yield _prose(plan.rest_missing)
    for table in shown:
        yield Text()
        yield Text(
            f"Ways out for {prose(table.layer)}, {held(byte_count(table.peak_bytes))} as it is",
            "bold",
        )
        yield _ways(table, linked=plan.link_bytes_per_s is not None)
        yield from _times(table)
    yield from _remarks(plan, shown)
    yield from _not_timed(shown)
    yield from _notes(shown)
    for warning in plan.warnings:
        yield Text()
        yield _prose(warning)


def _headline(plan: MemoryPlan) -> Text:
    needed = Text(held(memory_words.peak(plan)), "bold")
    for room in plan.rooms:
        style = "green" if room.fits else "red"
        needed.append("; ")
        needed.append(held(memory_words.room(room)), style)
    return needed.append(".")


def _parts(plan: MemoryPlan) -> Table:
    grid = _grid("", "table", "slots", "temporaries", "copy", "checkpoint")
    for table in plan.tables:
        grid.add_row(
            f"  {prose(table.layer)} {number(table.rows)} x {number(table.dim)}",
            *_bytes(
                table.table_bytes,
                table.slot_bytes,
                table.temporary_bytes,
                table.copy_bytes,
                table.checkpoint_bytes,
            ),
        )
    if not plan.tables:
        grid.add_row("  no embedding table was seen")
    if plan.rest is not None:
        rest = plan.rest
        grid.add_row(
            "  all other variables",
            *_bytes(
                rest.variable_bytes,
                rest.slot_bytes,
                rest.gradient_bytes,
                0,
                rest.variable_bytes + rest.slot_bytes,
            ),
        )
    return grid


def _ways(table: TablePlan, *, linked: bool) -> Table:
    link = ["on the link"] if linked else []
    grid = _grid("", "device", "saved", "host", "a step", "hits", *link)
    for way in table.ways:
        crossing = [Text(held(duration(way.link_ms)))] if linked else []
        grid.add_row(f"  {way.name}", *_way(way), *crossing)
    return grid


def _times(table: TablePlan) -> Iterator[RenderableType]:
    """What was timed of it, where anything was."""
    if table.times is None:
        return
    yield Text()
    yield Text.assemble(
        (f"Time of {prose(table.layer)}", "bold"), f", {prose(way_words.how(table.times))}"
    )
    rows = way_words.timed_rows(table.times)
    if rows:
        grid = _grid("", "timed", "as it is", "this way", "times as fast")
        for row in rows:
            cells = (row.timed, row.as_it_is, row.this_way, row.ratio)
            grid.add_row(f"  {row.way}", *(Text(held(cell)) for cell in cells))
        yield grid


def _remarks(plan: MemoryPlan, shown: list[TablePlan]) -> Iterator[RenderableType]:
    timed = [table.times for table in shown if table.times is not None]
    said = [*way_words.remarks(timed), *way_words.exchange(plan, shown)]
    if said:
        yield Text()
    yield from map(_prose, said)


def _not_timed(shown: list[TablePlan]) -> Iterator[RenderableType]:
    """Why tables have no times, each reason once."""
    reasons = dict.fromkeys(table.times_missing for table in shown if table.times_missing)
    for reason in reasons:
        yield Text()
        yield _prose(f"Without times: {_named(shown, reason)}. {reason}")


def _named(shown: list[TablePlan], reason: str) -> str:
    return ", ".join(table.layer for table in shown if table.times_missing == reason)


def _way(way: WayOut) -> list[Text]:
    exchanged = way.exchanged_bytes_per_step
    cells = [
        byte_count(way.device_bytes),
        byte_count(way.saved_bytes),
        byte_count(way.host_bytes) if way.host_bytes else NOTHING,
        NOTHING if exchanged is None else byte_count(exchanged),
        percent(way.hit_percent),
    ]
    return [Text(held(cell)) for cell in cells]


def _notes(shown: list[TablePlan]) -> Iterator[RenderableType]:
    """What the ways are, each once."""
    notes = {way.name: way.note for table in shown for way in table.ways}
    if not notes:
        return
    yield Text()
    for name, note in notes.items():
        yield Text.assemble((name, "bold"), f": {prose(note)}")


def _grid(first: str, *columns: str) -> Table:
    grid = Table(box=None, padding=(0, 1), pad_edge=False, show_edge=False, header_style="dim")
    grid.add_column(first, overflow="fold")
    for column in columns:
        grid.add_column(column, justify="right")
    return grid


def _bytes(*values: int) -> list[Text]:
    return [Text(held(byte_count(value)) if value else NOTHING) for value in values]


def _prose(text: str) -> Text:
    return Text(prose(text))
