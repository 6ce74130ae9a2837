from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from pipediag.reporters.terminal import render
from pipediag.session.model import Session
from tests import factories
from tests.reporters import sessions

SESSIONS: dict[str, Callable[[], Session]] = {
    "input-bound": factories.make_session,
    "compute-bound": factories.make_compute_bound_session,
    "nothing measured": sessions.nothing_measured,
    "hostile": sessions.hostile,
    "enormous": sessions.enormous,
}
every_session = pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS)
both_widths = pytest.mark.parametrize("width", [80, 120])


def shown(
    session: Session,
    *,
    width: int = 80,
    encoding: str = "utf-8",
    verbose: bool = False,
    terminal: bool = False,
) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(
        file=stream,
        width=width,
        force_terminal=terminal,
        color_system="truecolor" if terminal else None,
        legacy_windows=False,
    )
    render(session, console, output_directory=Path("reports/train"), verbose=verbose)
    stream.seek(0)
    return stream.read()


@every_session
@both_widths
def test_fits_a_screen(make: Callable[[], Session], width: int) -> None:
    lines = shown(make(), width=width).splitlines()

    assert len(lines) < 40
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


@every_session
def test_a_pipe_gets_plain_text(make: Callable[[], Session]) -> None:
    assert "\x1b" not in shown(make())


def test_a_terminal_gets_colour() -> None:
    assert "\x1b[" in shown(factories.make_session(), terminal=True)


@every_session
def test_ascii_where_the_terminal_has_no_more(make: Callable[[], Session]) -> None:
    unicode, ascii_only = shown(make()), shown(make(), encoding="ascii")

    assert ascii_only.isascii()
    assert [len(line) for line in ascii_only.splitlines()] == [
        len(line) for line in unicode.splitlines()
    ]


def test_says_verdict_breakdown_operation_finding_and_where_the_report_is() -> None:
    text = shown(factories.make_session(), width=120)

    assert "INPUT-BOUND  high severity, high confidence" in text
    assert "70 % of each step waits for input" in text
    assert "Waiting for input     ██████████████······  70.0 %  7.00 ms  (69.0 to 71.0 %)" in text
    assert "With free input: 3.33x (3.20 to 3.50) at most; then device compute limits" in text
    assert "▶ map(parse)" in text
    assert "train.py:12" in text
    assert "A stateful map runs one element at a time" in text
    assert "2.00x predicted, not tried" in text
    assert "reports/train/report.html" in text
    assert "pipediag analyze train.py" in text


def test_says_why_nothing_was_measured() -> None:
    text = shown(sessions.nothing_measured())

    assert "INCONCLUSIVE" in text
    assert "no-steps-reason" in text


def test_verbose_leaves_nothing_out() -> None:
    findings = [
        factories.make_finding(f"rule-{index}", title=f"Title number {index}.")
        for index in range(30)
    ]
    session = factories.make_session(findings=findings)

    assert "Title number 29." not in shown(session)
    assert "more in the report" in shown(session)
    assert "Title number 29." in shown(session, verbose=True)


def test_no_directory_no_pointer_to_a_report() -> None:
    stream = io.StringIO()
    render(factories.make_session(), Console(file=stream, width=80), output_directory=None)

    assert "report.html" not in stream.getvalue()


def test_a_script_that_was_killed_is_told_of() -> None:
    session = factories.make_session()
    killed = session.script.model_copy(update={"outcome": "killed", "detail": "SIGKILL ended it."})
    text = shown(session.model_copy(update={"script": killed}))
    assert "SIGKILL ended it." in text
    assert "SIGKILL" not in shown(session)
