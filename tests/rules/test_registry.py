from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipediag.rules import gpu_unused, misplaced_cache, registry, serial_stateful_map
from pipediag.rules.registry import RULES, run_rules
from pipediag.rules.rule import Rule
from pipediag.session.model import Session
from tests.factories import make_compute_bound_session, make_environment, make_session

RULES_DIRECTORY = Path(registry.__file__).parent


def test_a_rules_id_is_its_file_name() -> None:
    for rule in RULES:
        assert (RULES_DIRECTORY / f"{rule.META.id.replace('-', '_')}.py").is_file()
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.META.id)


def test_every_file_with_a_check_is_registered() -> None:
    with_check = {
        path.stem.replace("_", "-")
        for path in RULES_DIRECTORY.glob("*.py")
        if "\ndef check(session" in path.read_text(encoding="utf-8")
    }
    assert with_check == {rule.META.id for rule in RULES}


def test_every_threshold_says_where_it_comes_from() -> None:
    for rule in RULES:
        for threshold in rule.META.thresholds:
            assert threshold.unit
            assert len(threshold.source) > 10


def test_every_rule_speaks_once_or_more() -> None:
    findings = run_rules(make_session())
    assert {finding.rule for finding in findings} == {rule.META.id for rule in RULES}
    assert not [finding for finding in findings if finding.status == "error"]


def test_a_session_with_nothing_measured_is_no_error() -> None:
    bare = make_session(
        steps=None,
        breakdown=None,
        pipeline=None,
        host=None,
        differential=None,
        ceiling=None,
        input_wait=None,
        loops=[],
    )
    assert {finding.status for finding in run_rules(bare)} == {"not-applicable"}


def test_missing_sections_are_inconclusive_with_their_reason() -> None:
    session = make_session(breakdown=None, breakdown_missing="Only two steps were seen.")
    finding = next(f for f in run_rules(session) if f.rule == "serial-stateful-map")
    assert finding.status == "inconclusive"
    assert finding.advice == "Only two steps were seen."


def test_nothing_fails_where_the_pipeline_keeps_up() -> None:
    assert not [f for f in run_rules(make_compute_bound_session()) if f.status == "fail"]


def test_one_broken_rule_costs_only_its_own_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        META = serial_stateful_map.META

        @staticmethod
        def check(session: Session) -> list[object]:
            raise KeyError("delay")

    rules: tuple[Rule, ...] = (Broken, misplaced_cache)  # type: ignore[assignment]
    monkeypatch.setattr(registry, "RULES", rules)
    broken, other = run_rules(make_session())
    assert broken.status == "error"
    assert broken.evidence == {"exception": "KeyError", "message": "'delay'"}
    assert other.status == "not-applicable"


def test_a_missing_gpu_comes_first_and_before_all_other_advice() -> None:
    session = make_session(environment=make_environment(gpu_installed=["NVIDIA H200"]))
    findings = run_rules(session)
    assert findings[0].rule == gpu_unused.META.id
    assert findings[0].needs_first is None
    others = [f for f in findings[1:] if f.status in ("fail", "informative")]
    assert others
    assert {f.needs_first for f in others} == {"gpu-unused"}
    assert {f.needs_first for f in findings if f.status == "pass"} == {None}


def test_failures_are_ordered_by_subject_and_then_by_predicted_gain() -> None:
    findings = [f for f in run_rules(make_session()) if f.status == "fail"]
    speedups = [finding.predicted_speedup or 1.0 for finding in findings]
    assert len(speedups) > 1
    assert speedups == sorted(speedups, reverse=True)


def test_no_prediction_goes_beyond_the_ceiling() -> None:
    session = make_session()
    assert session.ceiling is not None
    limit = session.ceiling.speedup_if_input_free
    assert limit is not None
    predicted = [f.predicted_speedup for f in run_rules(session) if f.predicted_speedup]
    assert predicted
    assert max(predicted) <= limit


def test_a_failure_without_prediction_says_why() -> None:
    session = make_session(ceiling=None, ceiling_missing="No differential.")
    for finding in run_rules(session):
        if finding.status == "fail" and finding.predicted_speedup is None:
            assert finding.evidence["prediction_missing"]
