"""The summary of a session on the terminal: what a person needs before opening the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipediag.facts.names import as_typed
from pipediag.facts.order import worth_doing
from pipediag.reporters import sections
from pipediag.reporters.terminal import MAX_WIDTH, Encoded, named_rows, shortened
from pipediag.reporters.words import advice, labels
from pipediag.session.model import Session

_VERDICT_STYLE = {"ok": "green", "moderate": "yellow", "high": "red", "unknown": "cyan"}
_ROW_STYLE = {"good": "green", "bad": "red", "aside": "dim", "": ""}
_LONGEST = 600
"""Characters of a paragraph: all of any advice of ours; a text of the framework can be endless."""


def render(
    session: Session,
    console: Console,
    *,
    output_directory: Path | None,
    report_written: bool = True,
    verbose: bool = False,
) -> None:
    """Print the summary of a session: ten to fifteen lines, unless `verbose`.

    The directory is None where the session was not written.
    """
    directory = None if output_directory is None else as_typed(output_directory)
    report = directory / "report.html" if directory is not None and report_written else None
    width = min(console.width, MAX_WIDTH)
    heading = shortened(advice.heading(session), _LONGEST, "bold")
    shown: list[RenderableType] = [_title(session, width), heading]
    for rows in (sections.answer(session), sections.overview(session)):
        shown += _apart(rows)
    if verbose:
        shown += _apart(("Why", text, "") for text in sections.reasons(session))
        for section in sections.sections(session):
            shown += _section(section)
    shown += _apart(_following(session, directory, report))
    console.print(Encoded(Group(*shown)), width=width, highlight=False)


def _title(session: Session, width: int) -> Text:
    title = advice.title(session)
    style = _VERDICT_STYLE[title.severity]
    beside = f"  {', '.join(title.beside)}" if title.beside else ""
    command = labels.short_command(session.script, max(width - len(title.label + beside) - 4, 12))
    label = (title.label, f"bold {style}")
    return Text.assemble(("● ", style), label, beside, f"  {command}", no_wrap=True)


def _apart(rows: Iterable[sections.Row]) -> list[RenderableType]:
    """Return the rows below an empty line; nothing where there are none."""
    grid = named_rows(
        (name, shortened(text, _LONGEST, _ROW_STYLE.get(meant, meant)))
        for name, text, meant in rows
    )
    return [Text(), grid] if grid.row_count else []


def _following(
    session: Session, directory: Path | None, report: Path | None
) -> Iterator[sections.Row]:
    if report is not None:
        changes = sum(map(worth_doing, session.findings))
        yield "Report", f"{report}{f' ({changes} changes)' if changes > 1 else ''}", "bold"
    if (following := advice.next_command(session, directory)) is not None:
        yield *following, "bold"


def _section(section: sections.Section) -> Iterator[RenderableType]:
    yield Text(f"\n{section.title}", "bold")
    if section.lead:
        yield shortened(section.lead, _LONGEST)
    if section.numbers:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for at, name in enumerate(section.head):
            numeric = at in section.numbers
            table.add_column(name, justify="right" if numeric else "left", no_wrap=numeric)
        for row in section.rows:
            table.add_row(*(shortened(cell, _LONGEST) for cell in row))
        yield table
        return
    for _, title, *texts in section.rows:
        yield shortened(title, _LONGEST, "cyan")
        for text in filter(None, texts):
            yield shortened(f"  {text}", _LONGEST, "dim")
