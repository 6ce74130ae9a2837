"""The summary on the terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console, Group
from rich.table import Table

from pipediag.facts.order import concluded
from pipediag.reporters.terminal import Encoded, ShareBar, prose, shortened, summary
from pipediag.reporters.terminal.summary import render
from pipediag.session.embeddings import Embedding
from pipediag.session.model import Session
from tests import factories
from tests.factories import make_embedding
from tests.reporters import trial_sessions
from tests.reporters.sessions import SESSIONS
from tests.rules.sessions import make_ids

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
    assert "With free input: at most 3.50x; then device compute limits" in text
    assert "▶ map(parse)" in text
    assert "train.py:12" in text
    assert "A stateful map runs one element at a time" in text
    assert "not tried: at most 2.00x." in text
    assert "reports/train/report.html" in text
    assert "pipediag analyze train.py" in text


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


def words(text: str) -> str:
    return " ".join(text.split())


def test_each_trial_in_its_own_words() -> None:
    text = words(shown(trial_sessions.everything_tried(), width=120, verbose=True))
    assert "confirmed: measured 1.94x [1.88, 2.01] over 8 block pairs." in text
    assert "It changes a hyper-parameter, so retune." in text
    assert "not tried: at most 1.30x. The map calls a random function" in text
    assert "inconclusive: measured 1.05x [0.97, 1.14] over 4 block pairs." in text
    assert "refuted: measured 1.00x [0.98, 1.02] over 8 block pairs." in text
    assert "This advice does nothing here." in text
    assert "cache() after the map in line 12: With the parallel map it gains nothing." in text
    assert "they overlap, and the pipeline sets the pace" in text


def test_what_was_refuted_is_named_where_there_is_no_room_for_it() -> None:
    text = words(shown(trial_sessions.everything_tried(), width=80))
    assert "refuted, so leave it alone: prefetch(AUTOTUNE) after the batch in line 13" in text


def test_what_its_trial_left_open_is_not_advised_and_something_is_to_try() -> None:
    undecided = factories.make_finding(advice="Do this.", trial=trial_sessions.UNDECIDED)
    session = factories.make_session(findings=[undecided], trials=trial_sessions.make_run())
    lines = shown(session, width=120)
    assert "Do this." not in lines
    assert "Try next" in lines
    assert "`--budget 180`" in lines


def test_a_small_gain_that_nobody_has_seen_is_listed_and_not_told_to_be_done() -> None:
    small = factories.make_finding(advice="Do this.", speedup_at_most=1.06)
    session = concluded(factories.make_session(run=None), [small])
    text = " ".join(shown(session, width=120).split())
    assert "Do first Nothing: what was found promises 1.06x and no more" in text
    assert small.title in text
    assert text.index("Do first") < text.index(small.title)


def test_rules_that_could_not_decide_are_counted_and_those_that_failed_are_named() -> None:
    undecided = [
        factories.make_finding(
            "small-shuffle", status="inconclusive", title="Small shuffle: undecided"
        ),
        factories.make_finding("padding", status="inconclusive", title="Padding: undecided"),
        factories.make_finding("padding", status="error", title="Padding: stopped"),
    ]
    session = factories.make_session(findings=undecided)
    text = shown(session)
    assert "2 rules could not decide; the report says why" in text
    assert "Late filter" not in text
    assert "Padding: stopped" in text
    assert "Small shuffle: undecided" in shown(session, verbose=True)


def test_in_a_narrow_terminal_bars_are_whole_and_numbers_stay_beside_their_units() -> None:
    stream = io.StringIO()
    render(factories.make_session(), Console(file=stream, width=60), output_directory=None)
    lines = stream.getvalue().splitlines()
    bars = [line for line in lines if "█" in line or "···" in line]
    assert bars
    assert all("…" not in line and line.endswith("%)") for line in bars)
    assert not [line for line in lines if line.strip().startswith(("% ", "ms ", "s "))]


def table_of(tables: list[Embedding], limit: int) -> str:
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(Group(*summary._embeddings(tables, limit)))
    return captured.get()


def test_a_row_says_what_a_step_does_to_a_table() -> None:
    table = make_embedding(update="dense", ids=make_ids())
    text = table_of([table], 3)
    assert "bytes with slots" in text
    row = text.splitlines()[-2]
    for part in ("embedding", "1,000 x 64", "750\N{NO-BREAK SPACE}KiB", "400 of 1,000"):
        assert part in row
    assert "whole table" in row


@pytest.mark.parametrize("width", range(8, 30))
def test_a_number_and_its_unit_stay_on_one_line(width: int) -> None:
    stream = io.StringIO()
    text = prose("one  two\nthree 11.5\N{NO-BREAK SPACE}% four")
    Console(file=stream, width=width).print(Encoded(text))
    assert any("11.5 %" in line for line in stream.getvalue().splitlines())


def test_a_long_text_ends_with_a_sentence_or_a_word() -> None:
    assert shortened("Short.", 20).plain == "Short."
    assert shortened("One thing. Another thing.", 15).plain == "One thing."
    assert shortened("One thing and another, too", 24).plain == "One thing and another…"
    assert shortened("x" * 30, 10).plain == "x" * 9 + "…"


def row(percent: float, width: int) -> str:
    table = Table.grid(padding=(0, 1))
    for no_wrap in (False, True):
        table.add_column(no_wrap=no_wrap)
    table.add_row(ShareBar(percent), f"{percent:.0f} percent")
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get().rstrip("\n")


@pytest.mark.parametrize(
    ("percent", "width", "bar"),
    [
        (50, 80, "█" * 10 + "·" * 10),
        (100, 80, "█" * 20),
        (0, 80, "·" * 20),
        (50, 21, "█" * 5 + "·" * 5),
    ],
)
def test_it_is_as_long_as_there_is_room_for(percent: float, width: int, bar: str) -> None:
    assert row(percent, width).split(" ")[0] == bar
