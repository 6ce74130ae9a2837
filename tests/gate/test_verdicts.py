from __future__ import annotations

from typing import Any

import pytest

from pipediag.gate.config import GateConfig
from pipediag.gate.result import Level
from pipediag.gate.verdicts import verdict_check, verdict_checks, verdict_of_runs
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
        ("compute", "ok", "warn", "pass"),
        ("compute", "high", "error", "fail"),
        ("balanced", "ok", "warn", "pass"),
        ("balanced", "high", "error", "fail"),
        ("inconclusive", "high", "error", "fail"),
        ("inconclusive", "unknown", "error", "inconclusive"),
    ],
)
def test_the_severity_decides_whatever_the_bottleneck_is(
    bottleneck: str, severity: str, fail_on: Level, outcome: str
) -> None:
    session = make_session(verdict=make_verdict(bottleneck=bottleneck, severity=severity))
    assert verdict_check(session, GateConfig(fail_on=fail_on)).outcome == outcome


def test_an_inconclusive_verdict_gives_its_reasons() -> None:
    verdict = make_verdict(
        bottleneck="inconclusive",
        severity="unknown",
        summary="No verdict.",
        reasons=["Only 4 steps were seen."],
    )
    check = verdict_check(make_session(verdict=verdict), GateConfig())
    assert check.sentence == "No verdict. Only 4 steps were seen."


def test_the_line_of_the_verdict_is_the_checks() -> None:
    session = make_session(verdict=make_verdict(file="train.py", line=12))
    check = verdict_check(session, GateConfig())
    assert (check.file, check.line) == ("train.py", 12)


def waiting(percent: float, line: int = 12) -> Session:
    return make_session(
        breakdown=make_breakdown(input_wait=percent, device_compute=100.0 - percent),
        verdict=make_verdict(summary=f"{percent:.0f} % is waiting.", line=line),
    )


def test_of_several_runs_the_one_in_the_middle_speaks_and_all_values_are_shown() -> None:
    check = verdict_of_runs([waiting(58.0), waiting(68.0), waiting(60.0)], GateConfig())
    assert check.outcome == "fail"
    assert check.sentence == (
        "60 % is waiting. Input wait in each run: 58.0, 68.0, 60.0 % of the step."
    )


def test_runs_that_blame_different_lines_agree_on_the_verdict() -> None:
    check = verdict_of_runs([waiting(58.0, 11), waiting(60.0, 12), waiting(68.0, 13)], GateConfig())
    assert (check.outcome, check.line) == ("fail", 12)


def test_runs_without_a_breakdown_show_no_values() -> None:
    bare = make_session(breakdown=None, breakdown_missing="The profiler was in use.")
    check = verdict_of_runs([bare, bare, bare], GateConfig())
    assert "in each run" not in check.sentence


def test_a_verdict_about_the_run_shows_the_part_of_the_run() -> None:
    verdict = make_verdict(where="epoch_start")
    runs = [
        make_session(verdict=verdict, run=make_run(make_part("epoch_start", seconds)))
        for seconds in (30.0, 40.0, 35.0)
    ]
    assert verdict_of_runs(runs, GateConfig()).sentence.endswith(
        " Waiting for first batches in each run: 30.0, 40.0, 35.0 % of the run."
    )


def between_epochs(input_wait: float = 1.0) -> Session:
    """A run of which 74 % lies between the epochs."""
    return make_session(
        breakdown=make_breakdown(input_wait=input_wait, device_compute=99.0 - input_wait),
        run=make_run(make_part("epoch_end", 74.0)),
        verdict=make_verdict(
            bottleneck="compute",
            summary="74 % of the run lies between the epochs.",
            where="epoch_end",
            where_file="train.py",
            where_line=41,
            file=None,
            line=None,
            op_id=None,
        ),
    )


def outcomes(session: Session, **config: Any) -> list[tuple[str, str]]:
    checks = verdict_checks([session], GateConfig(**config))
    return [(check.outcome, check.severity) for check in checks]


def test_time_lost_outside_the_steps_fails_with_its_place() -> None:
    (check,) = verdict_checks([between_epochs()], GateConfig())
    assert (check.outcome, check.file, check.line) == ("fail", "train.py", 41)


@pytest.mark.parametrize(
    "config",
    [
        {"max_run_percent": {"compile": 90.0}},
        {"max_input_wait_percent": 20.0, "max_overhead_percent": 30.0},
        {"max_confirmed_speedup_left": 1.2},
    ],
)
def test_a_limit_on_something_else_does_not_drop_the_verdict(config: dict[str, Any]) -> None:
    assert outcomes(between_epochs(), **config) == [("fail", "error")]


def test_a_limit_on_the_part_leaves_the_verdict_on_the_steps() -> None:
    limit = {"epoch_end": 80.0}
    assert outcomes(between_epochs(), max_run_percent=limit) == [("pass", "error")]
    assert outcomes(between_epochs(input_wait=60.0), max_run_percent=limit) == [("fail", "error")]
    both = {"max_run_percent": limit, "max_input_wait_percent": 70.0}
    assert outcomes(between_epochs(input_wait=60.0), **both) == []


def test_the_verdict_has_a_severity_in_the_configuration() -> None:
    assert outcomes(between_epochs(), rules={"verdict": "warn"}) == [("warn", "warn")]
    assert outcomes(between_epochs(), rules={"verdict": "off"}) == []
