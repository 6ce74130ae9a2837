from __future__ import annotations

from typing import Any

import pytest
from markdown_it import MarkdownIt

from pipediag.reporters import markdown
from pipediag.session.model import Session
from tests import factories
from tests.reporters import sessions, trial_sessions

PARSER = MarkdownIt("commonmark").enable("table")


def written(session: Session) -> str:
    [(name, text)] = markdown.files(session)
    assert name == "report.md"
    return text


def headings(text: str) -> list[str]:
    tokens = PARSER.parse(text)
    return [tokens[at + 1].content for at, one in enumerate(tokens) if one.type == "heading_open"]


def test_it_says_what_an_issue_would_be_asked_for() -> None:
    session = trial_sessions.everything_tried()
    text = written(session.model_copy(update={"run": factories.make_run()}))

    assert headings(text)[0].startswith("pipediag: Input-bound")
    assert headings(text)[1:] == [
        "What to do first",
        "Where the run's time goes",
        "Where a step's time goes",
        "Findings",
        "Where it ran",
    ]
    assert "3.10x" in text
    assert "pairs of blocks" in text
    assert "| Waiting for input |" in text
    assert session.pipediag_version in text


@pytest.mark.parametrize(
    "make", [factories.make_session, sessions.hostile, sessions.enormous, sessions.nothing_measured]
)
def test_its_tables_are_tables(make: Any) -> None:
    session = make()
    tokens = PARSER.parse(written(session))

    tables = sum(token.type == "table_open" for token in tokens)
    expected = sum((session.run is not None, session.breakdown is not None, bool(session.findings)))
    assert tables == expected
    assert not any(token.type == "html_block" for token in tokens)


def test_what_was_not_measured_is_left_out_and_not_made_up() -> None:
    text = written(sessions.nothing_measured())

    assert headings(text)[0].startswith("pipediag: ")
    assert "killed before a step was seen" in text
    assert "Where a step's time goes" not in text
    assert len(written(sessions.enormous())) < 60_000
