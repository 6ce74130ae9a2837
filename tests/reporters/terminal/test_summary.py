from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from pipediag.facts.order import concluded
from pipediag.reporters.terminal.summary import render
from pipediag.session.model import Session
from tests import factories, records
from tests.reporters import sessions, trial_sessions

SESSIONS: dict[str, Callable[[], Session]] = {
    "input-bound": factories.make_session,
    "compute-bound": factories.make_compute_bound_session,
    "nothing measured": sessions.nothing_measured,
    "hostile": sessions.hostile,
    "enormous": sessions.enormous,
    "everything tried": trial_sessions.everything_tried,
    "no budget": trial_sessions.no_budget,
    "lost child": trial_sessions.lost_child,
    "pipeline only": trial_sessions.pipeline_only,
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
    assert "With free input: at most 3.50x; then device compute limits" in text
    assert "▶ map(parse)" in text
    assert "train.py:12" in text
    assert "A stateful map runs one element at a time" in text
    assert "not tried: at most 2.00x." in text
    assert "reports/train/report.html" in text
    assert "pipediag analyze train.py" in text


def test_the_mean_leads_with_the_median_beside_it() -> None:
    steps = records.make_steps(mean_ms=20.7, median_ms=4.87)
    text = shown(factories.make_session(steps=steps), width=120)
    assert "Mean step 20.7 ms (median 4.87 ms); 40 steps after 10 of warm-up" in (
        text.replace("\N{NO-BREAK SPACE}", " ")
    )


def test_shares_are_said_to_be_of_the_pipeline() -> None:
    assert "ms per step, share of the pipeline" in shown(factories.make_session())


def test_where_the_loops_time_goes_is_said() -> None:
    loop = factories.make_loop(time=factories.make_loop_time())
    text = " ".join(shown(factories.make_session(loops=[loop]), width=120).split())
    assert "The loop would take 20 s from its first step on: 15.0 % in steps; 80 % is wait" in text


def test_of_an_epoch_what_was_seen_of_the_run_is_said_beside_it() -> None:
    seen = [factories.make_part("startup", 3.0, 4.0), factories.make_part("steps", 1.0, 4.0)]
    run = factories.make_run(scope="epoch", seen=seen, total_s=4.0)
    text = " ".join(shown(factories.make_session(run=run), width=120).split())
    assert "All that was seen of the run, 4.00 s: start-up and imports 75.0 %, steps" in text


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


def test_says_what_went_otherwise_than_planned() -> None:
    noted = "Pipediag stopped counting steps after an error of its own."
    session = factories.make_session(notes=[noted, "second", "third"])
    text = shown(session, width=120)
    assert f"Note {noted}" in words(text)
    assert "second" in text
    assert "third" not in text
    assert "third" in shown(session, verbose=True)


def test_no_directory_no_pointer_to_a_report() -> None:
    stream = io.StringIO()
    render(factories.make_session(), Console(file=stream, width=80), output_directory=None)

    assert "report.html" not in stream.getvalue()


def test_what_limits_the_diagnosis_is_noted() -> None:
    session = factories.make_session().model_copy(
        update={"notes": [f"There was no trace, for the reason {index}." for index in range(30)]}
    )

    assert "Note There was no trace, for the reason 0." in words(shown(session))
    assert "for the reason 29." not in shown(session)
    assert "for the reason 29." in shown(session, verbose=True)
    assert "Note" not in shown(factories.make_session())


def test_a_script_that_was_killed_is_told_of() -> None:
    session = factories.make_session()
    killed = session.script.model_copy(update={"outcome": "killed", "detail": "SIGKILL ended it."})
    text = shown(session.model_copy(update={"script": killed}))
    assert "SIGKILL ended it." in text
    assert "SIGKILL" not in shown(session)


def words(text: str) -> str:
    return " ".join(text.split())


def test_what_was_measured_heads_the_summary() -> None:
    lines = shown(trial_sessions.everything_tried(), width=120).splitlines()

    assert lines[2].startswith(
        "Measured: 3.10x [2.90, 3.30] with 2 changes: 16 parallel calls on the map in line 12; "
    )


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


def test_a_reason_that_holds_for_all_is_given_once() -> None:
    text = shown(trial_sessions.no_budget(), width=120)

    assert text.count("--budget 0") == 1
    assert "not tried: at most 2.00x." in text


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


def test_a_bound_that_did_not_hold_is_said() -> None:
    finding = factories.make_finding(
        speedup_at_most=1.5, edit=trial_sessions.PARALLEL, trial=trial_sessions.CONFIRMED
    )
    session = factories.make_session(findings=[finding], trials=trial_sessions.make_run())

    assert "The bound did not hold: 1.50x" in " ".join(shown(session, width=120).split())


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
