from __future__ import annotations

from typing import Any

import pytest

from pipediag.errors import ExitStatus
from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate
from pipediag.gate.result import GateResult, worst_status
from pipediag.session.model import Session
from pipediag.session.run import Script
from tests.factories import make_compute_bound_session, make_session, make_verdict


def make_script(**overrides: Any) -> Script:
    return Script(**{"path": "train.py", "args": [], "outcome": "stopped", **overrides})


def make_inconclusive_session(**overrides: Any) -> Session:
    verdict = make_verdict(bottleneck="inconclusive", severity="unknown", summary="No verdict.")
    return make_session(**{"verdict": verdict, "findings": [], **overrides})


def test_by_default_the_verdict_and_the_rules_decide() -> None:
    result = evaluate(make_session(), GateConfig())
    assert [check.name for check in result.checks] == ["verdict", "parallel-map"]
    assert result.status is ExitStatus.GATE_FAILED


def test_a_moderate_verdict_fails_a_gate_that_fails_on_warnings() -> None:
    session = make_session(verdict=make_verdict(severity="moderate"), findings=[])
    assert evaluate(session, GateConfig()).status is ExitStatus.DONE
    assert evaluate(session, GateConfig(fail_on="warn")).status is ExitStatus.GATE_FAILED


def test_a_compute_bound_run_passes_by_default() -> None:
    assert evaluate(make_compute_bound_session(), GateConfig()).status is ExitStatus.DONE


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


def test_a_failure_outranks_what_is_inconclusive() -> None:
    config = GateConfig(max_input_wait_percent=20, max_overhead_percent=9)
    result = evaluate(make_session(findings=[]), config)
    assert [check.outcome for check in result.checks] == ["fail", "inconclusive"]
    assert result.status is ExitStatus.GATE_FAILED


@pytest.mark.parametrize(
    "script",
    [
        make_script(outcome="raised", status=1, detail="ValueError: no data"),
        make_script(outcome="killed", status=-9),
        make_script(outcome="timed-out"),
        make_script(outcome="interrupted", status=130),
        make_script(outcome="exited", status=7),
        make_script(outcome="exited", status=1),
        make_script(outcome="finished", status=1),
    ],
)
def test_a_script_that_failed_too_early_is_not_judged(script: Script) -> None:
    session = make_session(script=script, steps=None, breakdown=None)
    result = evaluate(session, GateConfig(allow_inconclusive=True))
    assert result.status is ExitStatus.SCRIPT_FAILED
    assert result.checks == ()
    assert result.script_failure is not None


def test_the_script_failure_names_the_cause_and_the_status() -> None:
    script = make_script(outcome="raised", status=1, detail="ValueError: no data.")
    result = evaluate(make_session(script=script, steps=None), GateConfig())
    assert result.script_failure == (
        "The script ended before enough steps were seen: ValueError: no data (its own status: 1)."
    )


@pytest.mark.parametrize("lacking", ["steps", "breakdown"])
def test_steps_and_their_breakdown_are_both_needed_to_judge_a_failed_script(lacking: str) -> None:
    session = make_session(script=make_script(outcome="exited", status=1), **{lacking: None})
    assert evaluate(session, GateConfig()).status is ExitStatus.SCRIPT_FAILED


def test_an_ending_without_words_and_status_is_still_said() -> None:
    session = make_session(script=make_script(outcome="timed-out"), steps=None)
    assert evaluate(session, GateConfig()).script_failure == (
        "The script ended before enough steps were seen: timed-out."
    )


def test_a_script_that_failed_after_enough_steps_is_judged() -> None:
    session = make_session(script=make_script(outcome="raised", status=1))
    assert evaluate(session, GateConfig()).status is ExitStatus.GATE_FAILED


@pytest.mark.parametrize("outcome", ["finished", "exited", "stopped", "hung-in-exit"])
def test_a_run_without_steps_that_did_not_fail_is_inconclusive(outcome: str) -> None:
    session = make_inconclusive_session(
        script=make_script(outcome=outcome, status=0), steps=None, breakdown=None
    )
    assert evaluate(session, GateConfig()).status is ExitStatus.INCONCLUSIVE


def test_the_worst_of_several_sessions_decides() -> None:
    failed = evaluate(make_session(), GateConfig())
    passed = evaluate(make_compute_bound_session(), GateConfig())
    undecided = evaluate(make_inconclusive_session(), GateConfig())
    broken = GateResult(label="x", checks=(), script_failure="It ended.")
    assert worst_status([passed, passed]) is ExitStatus.DONE
    assert worst_status([passed, undecided]) is ExitStatus.INCONCLUSIVE
    assert worst_status([undecided, broken, passed]) is ExitStatus.SCRIPT_FAILED
    assert worst_status([broken, undecided, failed]) is ExitStatus.GATE_FAILED
