"""Several runs of one script, judged as one."""

from __future__ import annotations

import math

import pytest

from pipediag.errors import ExitStatus
from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate, evaluate_runs
from pipediag.gate.limits import Measured, of_runs
from pipediag.gate.majority import majority
from pipediag.gate.result import Check, CheckOutcome
from pipediag.session.model import Session
from pipediag.session.run import Script
from tests.factories import make_compute_bound_session, make_finding, make_session
from tests.gate.formats.checks import make_check
from tests.records import make_breakdown

LIMITED = GateConfig(max_input_wait_percent=20)


def waiting(percent: float) -> Session:
    shares = make_breakdown(input_wait=percent, device_compute=100.0 - percent)
    return make_session(breakdown=shares, findings=[])


def shares(*percents: float, width: float = 2.0) -> list[Measured | str]:
    return [Measured(one, (one - width / 2, one + width / 2), "the step") for one in percents]


def test_the_median_and_the_spread_from_run_to_run() -> None:
    found = of_runs(shares(10.0, 12.0, 17.0))
    assert isinstance(found, Measured)
    # Their standard deviation is the root of 13; Student's table has 4.3027 for two degrees.
    reach = 4.302653 * math.sqrt(math.pi / 2) * math.sqrt(13.0 / 3.0)

    assert (found.value, found.runs) == (12.0, (10.0, 12.0, 17.0))
    assert found.interval == pytest.approx((12.0 - reach, 12.0 + reach), rel=1e-4)


def test_runs_that_agree_are_no_surer_than_each_by_itself() -> None:
    found = of_runs(shares(12.0, 12.0, 12.0))
    assert isinstance(found, Measured)
    assert found.interval == (11.0, 13.0)


def test_one_run_is_itself_and_one_that_lacks_it_leaves_all_without() -> None:
    [alone] = shares(12.0)
    assert of_runs([alone]) == alone
    assert of_runs([alone, "The profiler was in use."]) == "The profiler was in use."


@pytest.mark.parametrize(
    ("percents", "status"),
    [
        ((30.0, 31.0, 32.0), ExitStatus.GATE_FAILED),
        ((10.0, 11.0, 12.0), ExitStatus.DONE),
        ((10.0, 11.0, 60.0), ExitStatus.INCONCLUSIVE),
        ((10.0, 40.0), ExitStatus.INCONCLUSIVE),
    ],
)
def test_one_odd_run_decides_nothing(percents: tuple[float, ...], status: ExitStatus) -> None:
    assert evaluate_runs([waiting(one) for one in percents], LIMITED).status is status


def test_all_values_are_shown() -> None:
    [check] = evaluate_runs([waiting(one) for one in (30.0, 32.0, 31.0)], LIMITED).checks
    assert check.sentence.startswith(
        "Input wait: 31.0 % of the step (median of 30.0, 32.0, 31.0; 95 % interval "
    )


def test_between_runs_that_differ_more_of_them_help() -> None:
    [check] = evaluate_runs([waiting(one) for one in (10.0, 11.0, 60.0)], LIMITED).checks
    assert check.sentence.endswith("More runs (--repeats) make the interval narrower.")
    [alone] = evaluate_runs([waiting(20.0)], LIMITED).checks
    assert alone.sentence.endswith("More steps (--steps) make the interval narrower.")


def test_a_share_stays_one() -> None:
    [check] = evaluate_runs([waiting(one) for one in (5.0, 95.0)], LIMITED).checks
    assert check.interval == (0.0, 100.0)


def test_one_run_gives_what_it_always_gave() -> None:
    session = make_session()
    assert evaluate_runs([session], LIMITED) == evaluate(session, LIMITED)


@pytest.mark.parametrize(
    ("outcomes", "outcome"),
    [
        (["fail", "fail", "fail"], "fail"),
        (["fail", "fail", "pass"], "fail"),
        (["fail", "pass", "pass"], "pass"),
        (["fail", None, None], "pass"),
        (["fail", "fail", None], "fail"),
        (["fail", "pass"], "inconclusive"),
        (["fail", "warn", "pass"], "inconclusive"),
    ],
)
def test_of_a_rule_most_runs_decide(outcomes: list[CheckOutcome | None], outcome: str) -> None:
    runs: list[list[Check]] = [[] if one is None else [make_check(one)] for one in outcomes]
    [check] = majority(runs)
    assert check.outcome == outcome


def test_how_many_runs_say_so_is_told() -> None:
    [check] = majority([[make_check("fail")], [make_check("fail")], []])
    assert check.sentence == "Read again each epoch. (2 of 3 runs: fail.)"
    [rare] = majority([[make_check("fail")], [], []])
    assert rare.sentence == "Found in 1 of 3 runs only. Read again each epoch."
    [split] = majority([[make_check("fail")], []])
    assert split.sentence == "The runs do not agree: fail in 1, pass in 1. Read again each epoch."


def test_two_findings_of_a_rule_at_one_place_stay_two() -> None:
    assert len(majority([[make_check(), make_check()], [make_check(), make_check()]])) == 2


def test_verdicts_and_findings_go_by_most_runs() -> None:
    runs = [make_session(), make_compute_bound_session(), make_compute_bound_session()]
    assert evaluate_runs(runs, GateConfig()).status is ExitStatus.DONE
    runs = [make_session(), make_session(), make_compute_bound_session()]
    assert evaluate_runs(runs, GateConfig()).status is ExitStatus.GATE_FAILED


def test_a_run_that_failed_is_told() -> None:
    script = Script(path="train.py", args=[], outcome="killed", status=-9, detail="Out of memory")
    failed = make_session(script=script, steps=None)
    result = evaluate_runs([make_session(), failed, make_session()], GateConfig())

    assert result.status is ExitStatus.SCRIPT_FAILED
    assert (result.script_failure or "").startswith("1 of 3 runs failed. The script ended before")


def test_a_finding_of_every_run_is_said_once() -> None:
    runs = [make_session(findings=[make_finding()]) for _ in range(3)]
    names = [check.name for check in evaluate_runs(runs, GateConfig()).checks]
    assert names == ["verdict", "parallel-map"]
