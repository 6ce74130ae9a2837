from __future__ import annotations

from pipediag.rules.pipeline import debug_mode
from tests.factories import make_session
from tests.records import make_environment
from tests.rules.sessions import keeps_up, only

ON = make_environment(tf_data_debug_mode=True)


def test_fails_where_it_is_on() -> None:
    finding = only(debug_mode, make_session(environment=ON))
    assert finding.status == "fail"
    assert "enable_debug_mode()" in finding.advice


def test_passes_where_it_is_off() -> None:
    assert only(debug_mode, make_session()).status == "pass"


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    assert only(debug_mode, make_session(environment=ON, **keeps_up())).status == "informative"


def test_missing_breakdown_is_inconclusive() -> None:
    assert only(debug_mode, make_session(environment=ON, breakdown=None)).status == "inconclusive"


def test_says_why_it_is_not_tried() -> None:
    environment = make_environment(tf_data_debug_mode=True)
    finding = only(debug_mode, make_session(environment=environment))
    assert finding.edit is None
    assert "whole process" in str(finding.trial.reason)
