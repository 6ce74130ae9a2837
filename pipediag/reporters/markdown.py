"""The session as Markdown, for an issue or a message: what one would be asked for there."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.encoding import (
    applicable,
    clipped,
    markdown_code,
    markdown_heading,
    markdown_row,
    markdown_text,
)
from pipediag.facts.order import culprit_place
from pipediag.reporters import sections
from pipediag.reporters.words import advice, labels
from pipediag.session.model import Session

MOST_ROWS = 12
"""An issue is read by people; the CSV files have all."""
_MOST_LINES = 60
_LONGEST_CELL = 300
_LONGEST_TEXT = 1_600
"""Characters: an issue on GitHub holds 65,536 in all."""


def render(session: Session) -> str:
    """Return verdict, first advice, where run and step go, findings, and what it ran on."""
    title = advice.title(session)
    parts = [
        [markdown_heading(2, "pipediag", ", ".join((title.label, *title.beside)))],
        [_text(session.verdict.summary)],
        [f"- {_text(reason)}" for reason in session.verdict.reasons[:MOST_ROWS]],
        *(
            [f"- **{name}**: {_text(text)}" for name, text, _ in rows]
            for rows in (sections.answer(session), sections.overview(session))
        ),
        _patch(session),
        *(part for section in sections.sections(session) for part in _section(section)),
        [markdown_heading(3, "Where it ran")],
        [f"- {name}: {_text(value)}" for name, value in _where_it_ran(session) if value],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _patch(session: Session) -> list[str]:
    found = advice.answer(session)
    diff = found.patch.diff if found is not None and found.patch is not None else None
    if not diff:
        return []
    shown = [clipped(one.expandtabs(4), _LONGEST_CELL) for one in applicable(diff).split("\n")]
    return markdown_code("diff", shown[:_MOST_LINES])


def _section(section: sections.Section) -> Iterator[list[str]]:
    yield [markdown_heading(3, section.title)]
    yield [_text(section.lead)] if section.lead else []
    rule = ["--:" if at in section.numbers else "---" for at in range(len(section.head))]
    shown = [[clipped(cell, _LONGEST_CELL) for cell in row] for row in section.rows[:MOST_ROWS]]
    yield [
        f"| {' | '.join(section.head)} |",
        f"|{'|'.join(rule)}|",
        *map(markdown_row, shown),
    ]
    more = len(section.rows) - MOST_ROWS
    yield [f"And {more} more in the tables of the report."] if more > 0 else []


def _where_it_ran(session: Session) -> Iterator[tuple[str, str | None]]:
    environment, culprit = session.environment, culprit_place(session)
    places = labels.SourceNames(session)
    yield "Command", labels.command_line(session.script)
    yield "Line", places.at(culprit.file, culprit.line) if culprit else None
    yield "Processor", environment.cpu_model
    yield "Cores", str(environment.cores)
    yield "Devices", ", ".join(device.name for device in environment.devices) or "none"
    yield "TensorFlow", environment.tensorflow
    yield "Keras", environment.keras
    yield "Python", environment.python
    yield "pipediag", session.pipediag_version


def _text(value: str) -> str:
    return markdown_text(clipped(value, _LONGEST_TEXT))
