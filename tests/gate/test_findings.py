from __future__ import annotations

import pytest

from pipediag.gate.config import GateConfig, RuleLevel
from pipediag.gate.evaluation import finding_checks
from pipediag.gate.result import Level
from pipediag.session.ledger import RunGain
from pipediag.session.trials import Trial
from tests.factories import make_finding, make_session

RULE = "parallel-map"


@pytest.mark.parametrize(
    ("severity", "fail_on", "outcomes"),
    [
        ("error", "error", ["fail"]),
        ("warn", "error", ["warn"]),
        ("warn", "warn", ["fail"]),
        ("info", "warn", []),
    ],
)
def test_a_failed_rule_counts_at_its_own_severity(
    severity: str, fail_on: Level, outcomes: list[str]
) -> None:
    session = make_session(findings=[make_finding(severity=severity)])
    checks = finding_checks(session, GateConfig(fail_on=fail_on))
    assert [check.outcome for check in checks] == outcomes


@pytest.mark.parametrize(
    ("level", "outcomes"), [("off", []), ("warn", ["warn"]), ("error", ["fail"])]
)
def test_the_configured_level_replaces_the_severity(level: RuleLevel, outcomes: list[str]) -> None:
    session = make_session(findings=[make_finding(RULE, severity="info")])
    checks = finding_checks(session, GateConfig(rules={RULE: level}))
    assert [check.outcome for check in checks] == outcomes


@pytest.mark.parametrize(
    ("status", "outcomes"),
    [
        ("pass", ["pass"]),
        ("inconclusive", ["inconclusive"]),
        ("error", ["inconclusive"]),
        ("informative", ["pass"]),
        ("not-applicable", ["pass"]),
    ],
)
def test_each_status_of_a_configured_rule(status: str, outcomes: list[str]) -> None:
    session = make_session(findings=[make_finding(RULE, status=status, severity="info")])
    checks = finding_checks(session, GateConfig(rules={RULE: "error"}))
    assert [check.outcome for check in checks] == outcomes


def test_a_configured_rule_that_judges_nothing_says_why_it_passes() -> None:
    noted = make_finding(RULE, status="informative", title="A slow map.", advice="Later.")
    apart = make_finding(
        RULE, status="not-applicable", title="A map: does not apply", advice="None is seen."
    )
    session = make_session(findings=[noted, apart])
    checks = finding_checks(session, GateConfig(rules={RULE: "error"}))
    assert [check.sentence for check in checks] == [
        "Noted, and not held against it: A slow map. Later.",
        "A map: does not apply. None is seen.",
    ]
    assert finding_checks(session, GateConfig()) == []


def test_a_configured_rule_without_a_result_is_inconclusive() -> None:
    (check,) = finding_checks(make_session(findings=[]), GateConfig(rules={RULE: "error"}))
    assert (check.name, check.outcome, check.severity) == (RULE, "inconclusive", "error")
    assert RULE in check.sentence


def test_a_rule_that_is_off_needs_no_result() -> None:
    assert finding_checks(make_session(findings=[]), GateConfig(rules={RULE: "off"})) == []


def test_a_failed_check_carries_the_place_and_the_advice() -> None:
    (check,) = finding_checks(make_session(findings=[make_finding()]), GateConfig())
    assert (check.name, check.file, check.line) == (RULE, "train.py", 12)
    assert check.sentence == (
        "A stateful map runs one element at a time. Write the function in TensorFlow operations."
    )


def test_every_finding_of_a_rule_is_a_check() -> None:
    session = make_session(findings=[make_finding(line=12), make_finding(line=20)])
    assert [check.line for check in finding_checks(session, GateConfig())] == [12, 20]


def test_a_check_says_what_a_trial_of_the_advice_found() -> None:
    trial = Trial(state="refuted", reason=None, speedup=1.0, ci95=(0.98, 1.02), blocks=8)
    (tried,) = finding_checks(make_session(findings=[make_finding(trial=trial)]), GateConfig())
    (untried,) = finding_checks(make_session(findings=[make_finding()]), GateConfig())

    assert tried.sentence == f"{untried.sentence} A trial of it: refuted, 1.00x [0.98, 1.02]."


def test_what_makes_results_wrong_fails_whatever_it_costs_to_mend() -> None:
    trial = Trial(state="refuted", reason=None, speedup=0.8, ci95=(0.78, 0.82), blocks=8)
    wrong = make_finding(severity="error", subject="correctness", trial=trial)
    (check,) = finding_checks(make_session(findings=[wrong]), GateConfig())
    assert check.outcome == "fail"
    assert check.sentence.endswith(" Done so, it runs 0.80x as fast [0.78, 0.82].")


def test_an_estimate_is_called_one() -> None:
    trial = Trial(
        state="confirmed", reason=None, speedup=4.16, ci95=(4.16, 4.16), blocks=8, basis="pipeline"
    )
    (check,) = finding_checks(make_session(findings=[make_finding(trial=trial)]), GateConfig())
    assert check.sentence.endswith(" A trial of its pipeline alone: confirmed, estimated 4.16x.")


def test_a_failed_rule_whose_advice_bought_nothing_passes() -> None:
    trial = Trial(state="refuted", reason=None, speedup=0.9, ci95=(0.88, 0.92), blocks=8)
    (check,) = finding_checks(make_session(findings=[make_finding(trial=trial)]), GateConfig())
    assert (check.outcome, check.severity) == ("pass", "error")


def test_what_passed_is_given_no_advice() -> None:
    passed = make_finding(status="pass", title="The map runs in parallel.")
    (check,) = finding_checks(make_session(findings=[passed]), GateConfig())
    assert check.sentence == "The map runs in parallel."


def test_a_title_keeps_its_letters_and_gets_one_full_stop() -> None:
    failed = make_finding(title="...of a dataset of XX.", advice="")
    (check,) = finding_checks(make_session(findings=[failed]), GateConfig())
    assert check.sentence == "...of a dataset of XX."


def test_a_trial_without_an_interval_is_not_told() -> None:
    trial = Trial(state="inconclusive", reason="Too few rounds.", speedup=1.2, ci95=None, blocks=2)
    (check,) = finding_checks(make_session(findings=[make_finding(trial=trial)]), GateConfig())
    assert check.sentence.endswith("Write the function in TensorFlow operations.")


@pytest.mark.parametrize(
    ("state", "subject", "speedup"),
    [("confirmed", "speed", 2.0), ("refuted", "speed", None), ("confirmed", "correctness", None)],
)
def test_only_a_confirmed_speed_up_counts(state: str, subject: str, speedup: float | None) -> None:
    trial = Trial.model_validate(
        {"state": state, "reason": None, "speedup": 2.0, "ci95": (1.9, 2.1), "blocks": 8}
    )
    finding = make_finding(trial=trial, subject=subject)
    (check,) = finding_checks(make_session(findings=[finding]), GateConfig())
    assert check.speedup == speedup


def test_what_an_edit_buys_is_said_of_the_run_where_that_is_known() -> None:
    trial = Trial(state="confirmed", reason=None, speedup=4.0, ci95=(3.9, 4.1), blocks=8)
    gain = RunGain(speedup=1.1, before_s=20.0, after_s=18.2, basis="measured", scope="run")
    finding = make_finding(trial=trial, for_run=gain)
    (check,) = finding_checks(make_session(findings=[finding]), GateConfig())
    assert check.speedup == 1.1
