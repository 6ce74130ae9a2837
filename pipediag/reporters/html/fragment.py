"""The report's first screen for a cell of a notebook: no script, nothing fetched, styles that reach
nothing else on the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipediag.facts.names import RUN_PART
from pipediag.reporters.html import charts
from pipediag.reporters.html.page import environment
from pipediag.reporters.words import headline, labels, run_parts, verdict_words
from pipediag.session.model import Session

MAX_BYTES = 40_000
"""Own choice: a notebook keeps its outputs, and one may show many sessions."""


@dataclass(frozen=True)
class _Piece:
    """Of a bar: its width in percent of the bar, what it is, and the class that colours it."""

    kind: str
    name: str
    width: float
    percent: float


def render(session: Session) -> str:
    """Verdict, what was measured, what to do first, and where step and run go, as one element.

    It has no ids and no headings: a notebook may show it many times, within an outline of its own.
    """
    return (
        environment()
        .get_template("fragment.html.j2")
        .render(
            session=session,
            command=labels.command_line(session.script),
            severity=verdict_words.shown(session),
            headline=headline.headline(session),
            step_pieces=list(_of_step(session)),
            run_pieces=list(_of_run(session)),
        )
    )


def _of_step(session: Session) -> Iterator[_Piece]:
    for segment in charts.breakdown_segments(session.breakdown or {}):
        name = labels.STEP_CLASS[segment.name]
        yield _Piece(segment.name, name, segment.width, segment.share.percent)


def _of_run(session: Session) -> Iterator[_Piece]:
    parts = run_parts.parts_of(session.run) if session.run else []
    for segment in charts.run_segments(parts):
        part = segment.part
        name = RUN_PART[part.name]
        yield _Piece(f"part-{part.name}", name, segment.width, part.percent)
