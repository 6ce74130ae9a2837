"""Verdict, rules and limits together."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.comparison.quantities import run_in_the_middle
from pipediag.errors import ExitStatus
from pipediag.gate.config import GateConfig, RuleLevel
from pipediag.gate.evaluation import evaluate, finding_checks, verdict_checks
from pipediag.gate.result import Level
from pipediag.session.model import Script, Session
from pipediag.session.trials import Trial
from pipediag.vocabulary import TrialState
from tests.factories import make_finding, make_session, make_verdict
from tests.ledgers import make_part, make_run
from tests.records import make_breakdown, make_steps


def make_script(**overrides: Any) -> Script:
    return Script(**{"path": "train.py", "args": [], "outcome": "stopped", **overrides})


def make_inconclusive_session(**overrides: Any) -> Session:
    verdict = make_verdict(bottleneck="inconclusive", severity="unknown", summary="No verdict.")
    return make_session(**{"verdict": verdict, "findings": [], **overrides})


def test_a_limit_takes_the_place_of_the_verdict() -> None:
    config = GateConfig(max_input_wait_percent=90, rules={"parallel-map": "off"})
    result = evaluate(make_session(), config)
    assert [check.name for check in result.checks] == ["max-input-wait-percent"]
    assert result.status is ExitStatus.DONE


def test_an_inconclusive_check_ends_with_4_unless_allowed() -> None:
    session = make_inconclusive_session()
    assert evaluate(session, GateConfig()).status is ExitStatus.INCONCLUSIVE
    assert evaluate(session, GateConfig(allow_inconclusive=True)).status is ExitStatus.DONE


def test_an_inconclusive_warning_does_not_stop_an_error_gate() -> None:
    config = GateConfig(max_input_wait_percent=90, rules={"missing-cache": "warn"})
    session = make_session(findings=[])
    assert evaluate(session, config).status is ExitStatus.DONE
    assert evaluate(session, config.override(fail_on="warn")).status is ExitStatus.INCONCLUSIVE


@pytest.mark.parametrize(
    "script",
    [
        make_script(outcome="raised", status=1, detail="ValueError: no data"),
        make_script(outcome="timed-out"),
        make_script(outcome="interrupted", status=130),
        make_script(outcome="exited", status=7),
        make_script(outcome="finished", status=1),
    ],
)
def test_a_script_that_failed_too_early_is_not_judged(script: Script) -> None:
    session = make_session(script=script, steps=None, breakdown=None)
    result = evaluate(session, GateConfig(allow_inconclusive=True))
    assert result.status is ExitStatus.SCRIPT_FAILED
    assert result.checks == ()
    assert result.script_failure is not None


def test_a_script_that_failed_after_enough_steps_is_judged() -> None:
    session = make_session(script=make_script(outcome="raised", status=1))
    assert evaluate(session, GateConfig()).status is ExitStatus.GATE_FAILED


@pytest.mark.parametrize("outcome", ["finished", "exited", "stopped", "hung-in-exit"])
def test_a_run_without_steps_that_did_not_fail_is_inconclusive(outcome: str) -> None:
    session = make_inconclusive_session(
        script=make_script(outcome=outcome, status=0), steps=None, breakdown=None
    )
    assert evaluate(session, GateConfig()).status is ExitStatus.INCONCLUSIVE


@pytest.mark.parametrize(
    ("bottleneck", "severity", "fail_on", "outcome"),
    [
        ("input", "high", "error", "fail"),
        ("transfer", "high", "error", "fail"),
        ("input", "moderate", "error", "warn"),
        ("input", "moderate", "warn", "fail"),
        ("input", "ok", "warn", "pass"),
        ("compute", "ok", "warn", "pass"),
        ("inconclusive", "high", "error", "fail"),
        ("inconclusive", "unknown", "error", "inconclusive"),
    ],
)
def test_the_severity_decides_whatever_the_bottleneck_is(
    bottleneck: str, severity: str, fail_on: Level, outcome: str
) -> None:
    session = make_session(verdict=make_verdict(bottleneck=bottleneck, severity=severity))
    assert verdict_checks(session, GateConfig(fail_on=fail_on))[0].outcome == outcome


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


def outcomes_of(session: Session, **config: Any) -> list[tuple[str, str]]:
    checks = verdict_checks(session, GateConfig(**config))
    return [(check.outcome, check.severity) for check in checks]


def test_time_lost_outside_the_steps_fails_with_its_place() -> None:
    (check,) = verdict_checks(between_epochs(), GateConfig())
    assert (check.outcome, check.file, check.line) == ("fail", "train.py", 41)


@pytest.mark.parametrize(
    "config",
    [
        {"max_run_percent": {"compile": 90.0}},
        {"max_input_wait_percent": 20.0, "max_overhead_percent": 30.0},
    ],
)
def test_a_limit_on_something_else_does_not_drop_the_verdict(config: dict[str, Any]) -> None:
    assert outcomes_of(between_epochs(), **config) == [("fail", "error")]


def test_a_limit_on_the_part_leaves_the_verdict_on_the_steps() -> None:
    limit = {"epoch_end": 80.0}
    assert outcomes_of(between_epochs(), max_run_percent=limit) == [("pass", "error")]
    assert outcomes_of(between_epochs(input_wait=60.0), max_run_percent=limit) == [
        ("fail", "error")
    ]
    both = {"max_run_percent": limit, "max_input_wait_percent": 70.0}
    assert outcomes_of(between_epochs(input_wait=60.0), **both) == []


RULE = "parallel-map"


@pytest.mark.parametrize(
    ("status", "severity", "level", "fail_on", "outcomes"),
    [
        # A rule that fails counts at its own severity,
        ("fail", "error", None, "error", ["fail"]),
        ("fail", "warn", None, "error", ["warn"]),
        ("fail", "warn", None, "warn", ["fail"]),
        ("fail", "info", None, "warn", []),
        # or at the one that is configured.
        ("fail", "info", "off", "error", []),
        ("fail", "info", "warn", "error", ["warn"]),
        ("fail", "info", "error", "error", ["fail"]),
        ("pass", "info", "error", "error", ["pass"]),
        ("inconclusive", "info", "error", "error", ["inconclusive"]),
        ("error", "info", "error", "error", ["inconclusive"]),
        ("informative", "info", "error", "error", []),
        ("not-applicable", "info", "error", "error", []),
    ],
)
def test_the_outcome_of_a_rule(
    status: str, severity: str, level: RuleLevel | None, fail_on: Level, outcomes: list[str]
) -> None:
    session = make_session(findings=[make_finding(RULE, status=status, severity=severity)])
    config = GateConfig(fail_on=fail_on, rules={RULE: level} if level else {})
    assert [check.outcome for check in finding_checks(session, config)] == outcomes


def test_a_configured_rule_without_a_result_is_inconclusive() -> None:
    (check,) = finding_checks(make_session(findings=[]), GateConfig(rules={RULE: "error"}))
    assert (check.name, check.outcome, check.severity) == (RULE, "inconclusive", "error")
    assert RULE in check.sentence


def test_what_makes_results_wrong_fails_whatever_it_costs() -> None:
    trial = Trial(state="refuted", reason=None, speedup=0.8, ci95=(0.78, 0.82), blocks=8)
    wrong = make_finding(severity="error", subject="correctness", trial=trial)
    (check,) = finding_checks(make_session(findings=[wrong]), GateConfig())
    assert check.outcome == "fail"
    assert check.sentence.endswith(" A trial of it: 0.80x [0.78, 0.82].")


def test_a_failed_rule_whose_advice_bought_nothing_passes() -> None:
    trial = Trial(state="refuted", reason=None, speedup=0.9, ci95=(0.88, 0.92), blocks=8)
    (check,) = finding_checks(make_session(findings=[make_finding(trial=trial)]), GateConfig())
    assert (check.outcome, check.severity) == ("pass", "error")


@pytest.mark.parametrize("state", ["inconclusive", "not_tried"])
def test_what_has_no_measured_speed_up_fails(state: TrialState) -> None:
    trial = Trial(state=state, reason="One round was too few.")
    (check,) = finding_checks(make_session(findings=[make_finding(trial=trial)]), GateConfig())
    assert check.outcome == "fail"


def test_the_run_in_the_middle_is_that_with_the_median_step() -> None:
    slow, usual = (make_session(steps=make_steps(mean_ms=one)) for one in (30.0, 20.0))
    lost = make_session(steps=None)
    assert run_in_the_middle([slow, usual, usual]) is usual
    assert run_in_the_middle([lost, usual, slow]) is slow
