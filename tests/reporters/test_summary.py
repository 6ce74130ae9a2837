"""The summary on the terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from pipediag.facts.order import concluded
from pipediag.reporters.terminal import Encoded, ShareBar, prose, shortened
from pipediag.reporters.terminal.summary import render
from pipediag.session.model import Script, Session
from tests import factories
from tests.factories import make_embedding
from tests.reporters import trial_sessions
from tests.reporters.sessions import SESSIONS
from tests.rules.sessions import make_ids

every_session = pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS)


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


@pytest.mark.parametrize("width", [80, 120])
@every_session
def test_fits_a_screen(make: Callable[[], Session], width: int) -> None:
    session = make()
    lines = shown(session, width=width).splitlines()
    assert len(lines) < (60 if make is SESSIONS["enormous"] else 21)
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


def test_advice_is_never_cut_and_a_path_keeps_its_end() -> None:
    advice = f"{'Do this at once. ' * 25}Then rest."
    script = Script(path="/deep" * 40 + "/train.py", args=["--lr"], outcome="stopped")
    session = factories.make_session(
        findings=[factories.make_finding(advice=advice)], script=script
    )
    text = words(shown(session))
    assert advice in text
    assert "/train.py" in text.split(" Change ")[0]


@every_session
def test_ascii_where_the_terminal_has_no_more(make: Callable[[], Session]) -> None:
    unicode, ascii_only = shown(make()), shown(make(), encoding="ascii")
    assert ascii_only.isascii()
    assert [len(line) for line in ascii_only.splitlines()] == [
        len(line) for line in unicode.splitlines()
    ]


def test_says_what_is_slow_what_to_change_what_it_buys_and_why() -> None:
    text = words(shown(trial_sessions.patched(), width=120))
    assert "● Input-bound high severity train.py" in text
    assert "Change Pass num_parallel_calls=16." in text
    assert "Gain 3.1x [2.9, 3.3] in a step, measured." in text
    assert "Why The script as it is and as changed alternated" in text
    assert "Step 10.0 ms: waiting for input 70 %" in text
    assert "reports/train/report.html" in text
    assert "pipediag fix reports/train" in text


def test_verbose_leaves_nothing_out() -> None:
    findings = [
        factories.make_finding(f"rule-{index}", title=f"Title number {index}.")
        for index in range(30)
    ]
    session = factories.make_session(findings=findings)
    assert "Title number 29." not in shown(session)
    assert "more in the report" in shown(session)
    everything = shown(session, verbose=True)
    assert "Title number 29." in everything
    assert "▶ map(parse)" in everything
    assert "Waiting for input     ██████████████" in everything


def test_no_directory_no_pointer_to_a_report() -> None:
    stream = io.StringIO()
    render(factories.make_session(), Console(file=stream, width=80), output_directory=None)
    assert "report.html" not in stream.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


def test_each_trial_in_its_own_words() -> None:
    text = words(shown(trial_sessions.everything_tried(), width=120, verbose=True))
    assert "confirmed: measured 1.9x [1.9, 2.0] over 8 block pairs." in text
    assert "It changes a hyper-parameter, so retune." in text
    assert "not tried: at most 1.30x. The map calls a random function" in text
    assert "inconclusive: measured 1.05x [0.97, 1.14] over 4 block pairs." in text
    assert "refuted: measured 1.00x [0.98, 1.02] over 8 block pairs." in text
    assert "This advice does nothing here." in text
    assert "cache() after the map in line 12: With the parallel map it gains nothing." in text


def test_what_its_trial_left_open_is_not_advised_and_something_is_to_try() -> None:
    undecided = factories.make_finding(advice="Do this.", trial=trial_sessions.UNDECIDED)
    session = factories.make_session(findings=[undecided], trials=trial_sessions.make_run())
    lines = shown(session, width=120)
    assert "Do this." not in lines
    assert "Try next" in lines
    assert "`--budget 180`" in lines


def test_a_small_gain_that_nobody_has_seen_is_not_advised() -> None:
    small = factories.make_finding(advice="Do this.", speedup_at_most=1.06)
    session = concluded(factories.make_session(run=None), [small])
    text = words(shown(session, width=120))
    assert "Do this." not in text
    assert "Change Nothing: the best change that was found promises no more than" in text


def test_undecided_rules_are_for_the_verbose() -> None:
    undecided = [factories.make_finding(status="inconclusive", title="Small shuffle: undecided")]
    session = factories.make_session(findings=undecided)
    assert "Small shuffle: undecided" not in shown(session)
    assert "Small shuffle: undecided" in shown(session, verbose=True)


def test_a_healthy_run_says_so_and_stops() -> None:
    text = shown(factories.make_compute_bound_session())
    assert text.startswith("● Healthy")
    assert "Change" not in text
    assert len(text.splitlines()) < 12


def test_verbose_says_what_a_step_does_to_a_table() -> None:
    table = make_embedding(update="dense", ids=make_ids())
    text = words(shown(factories.make_session(embeddings=[table]), verbose=True))
    for part in ("embedding: 1,000 x 64", "750 KiB with slots", "400 of 1,000", "whole table"):
        assert part in text


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
