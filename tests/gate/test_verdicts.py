from __future__ import annotations

import pytest

from pipediag.gate.result import Level
from pipediag.gate.verdicts import verdict_check, verdict_of_runs
from pipediag.session.model import Session
from tests.factories import make_session, make_verdict
from tests.ledgers import make_part, make_run
from tests.records import make_breakdown


@pytest.mark.parametrize(
    ("bottleneck", "severity", "fail_on", "outcome"),
    [
        ("input", "high", "error", "fail"),
        ("overhead", "high", "error", "fail"),
        ("transfer", "high", "error", "fail"),
        ("input", "moderate", "error", "warn"),
        ("input", "moderate", "warn", "fail"),
        ("input", "ok", "warn", "pass"),
        ("compute", "high", "warn", "pass"),
        ("balanced", "ok", "warn", "pass"),
        ("inconclusive", "unknown", "error", "inconclusive"),
    ],
)
def test_only_certain_waste_fails(
    bottleneck: str, severity: str, fail_on: Level, outcome: str
) -> None:
    session = make_session(verdict=make_verdict(bottleneck=bottleneck, severity=severity))
    assert verdict_check(session, fail_on).outcome == outcome


def test_an_inconclusive_verdict_gives_its_reasons() -> None:
    verdict = make_verdict(
        bottleneck="inconclusive",
        severity="unknown",
        summary="No verdict.",
        reasons=["Only 4 steps were seen."],
    )
    check = verdict_check(make_session(verdict=verdict), "error")
    assert check.sentence == "No verdict. Only 4 steps were seen."


def test_the_line_of_the_verdict_is_the_checks() -> None:
    check = verdict_check(make_session(verdict=make_verdict(file="train.py", line=12)), "error")
    assert (check.file, check.line) == ("train.py", 12)


def waiting(percent: float, line: int = 12) -> Session:
    return make_session(
        breakdown=make_breakdown(input_wait=percent, device_compute=100.0 - percent),
        verdict=make_verdict(summary=f"{percent:.0f} % is waiting.", line=line),
    )


def test_of_several_runs_the_one_in_the_middle_speaks_and_all_values_are_shown() -> None:
    check = verdict_of_runs([waiting(58.0), waiting(68.0), waiting(60.0)], "error")
    assert check.outcome == "fail"
    assert check.sentence == (
        "60 % is waiting. Input wait in each run: 58.0, 68.0, 60.0 % of the step."
    )


def test_runs_that_blame_different_lines_agree_on_the_verdict() -> None:
    check = verdict_of_runs([waiting(58.0, 11), waiting(60.0, 12), waiting(68.0, 13)], "error")
    assert (check.outcome, check.line) == ("fail", 12)


def test_runs_without_a_breakdown_show_no_values() -> None:
    bare = make_session(breakdown=None, breakdown_missing="The profiler was in use.")
    check = verdict_of_runs([bare, bare, bare], "error")
    assert "in each run" not in check.sentence


def test_a_verdict_about_the_run_shows_the_part_of_the_run() -> None:
    verdict = make_verdict(where="epoch_start")
    runs = [
        make_session(verdict=verdict, run=make_run(make_part("epoch_start", seconds)))
        for seconds in (30.0, 40.0, 35.0)
    ]
    assert verdict_of_runs(runs, "error").sentence.endswith(
        " Waiting for the first batch of an epoch in each run: 30.0, 40.0, 35.0 % of the run."
    )
