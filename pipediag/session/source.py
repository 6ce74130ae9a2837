"""Lines of the user's source that a session keeps, so that a report can show them."""

from __future__ import annotations

from pipediag.session.record import Record


class CallSpan(Record):
    """Where a call stands, from the name that is called to the bracket that closes it."""

    line: int
    column: int
    """In characters, from 0."""
    end_line: int
    end_column: int


class SourceExcerpt(Record):
    """Some lines as they were measured."""

    file: str
    line: int
    """The one that is meant."""
    first_line: int
    lines: list[str]
    call: CallSpan | None = None
    """The call that is meant; None where the line has none that can be told from others."""
