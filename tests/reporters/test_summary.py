"""The summary on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipediag.reporters.terminal.summary import render
from pipediag.session.model import Script, Session
from tests import factories
from tests.reporters.pages import on_terminal
from tests.reporters.sessions import SESSIONS

every_session = pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS)


def shown(session: Session, *, verbose: bool = False, **terminal: Any) -> str:
    def write(console: Console) -> None:
        render(session, console, output_directory=Path("reports/train"), verbose=verbose)

    return on_terminal(write, **terminal)


@pytest.mark.parametrize("width", [80, 120])
@every_session
def test_fits_a_screen(make: Callable[[], Session], width: int) -> None:
    session = make()
    lines = shown(session, width=width).splitlines()
    assert len(lines) < (60 if make is SESSIONS["enormous"] else 20)
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


def test_advice_is_never_cut_within_a_sentence_and_a_path_keeps_its_end() -> None:
    first = f"{'Do this at once, ' * 20}now."
    advice = f"{first} Then rest."
    script = Script(path="/deep" * 40 + "/train.py", args=["--lr"], outcome="stopped")
    session = factories.make_session(
        findings=[factories.make_finding(advice=advice)], script=script
    )
    text = words(shown(session))
    assert first in text
    assert "Then rest." not in text
    assert "/train.py" in text.split(" Change ")[0]
    with_code = factories.make_finding(advice=f"{first} Put `f()` there.")
    text = words(shown(factories.make_session(findings=[with_code])))
    assert f"{first} The report has the code." in text


@every_session
def test_ascii_where_the_terminal_has_no_more(make: Callable[[], Session]) -> None:
    unicode, ascii_only = shown(make()), shown(make(), encoding="ascii")
    assert ascii_only.isascii()
    assert [len(line) for line in ascii_only.splitlines()] == [
        len(line) for line in unicode.splitlines()
    ]


def test_verbose_leaves_nothing_out() -> None:
    findings = [
        factories.make_finding(f"rule-{index}", title=f"Title number {index}.")
        for index in range(30)
    ]
    session = factories.make_session(findings=findings)
    assert "Title number 29." not in shown(session)
    assert "(30 changes)" in shown(session)
    everything = shown(session, verbose=True)
    assert "Title number 29." in everything
    assert "▶ map(parse)" in everything
    assert "Waiting for input" in everything


def words(text: str) -> str:
    return " ".join(text.split())
