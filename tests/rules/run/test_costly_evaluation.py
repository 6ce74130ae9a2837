from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.run import costly_evaluation
from pipediag.session.ledger import RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from tests.factories import make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.rules.sessions import only, run

VALIDATION = make_loop(id="loop_1", role="validation", diagnosed=False, batch_size=16)


def evaluated(seconds: float, **overrides: Any) -> RunPart:
    values = {
        "what": "validation in `fit`",
        "file": "train.py",
        "line": 20,
        "count": 20,
        "loop_id": "loop_0",
    }
    return make_part("evaluation", seconds, **{**values, **overrides})


def session_with(*parts: RunPart, loops: list[Loop] | None = None, **overrides: Any) -> Session:
    every = loops if loops is not None else [make_loop(), VALIDATION]
    return make_session(run=make_run(*parts, **overrides), loops=every)


def test_validation_in_fit_is_done_less_often() -> None:
    finding = only(costly_evaluation, session_with(evaluated(40.0)))
    assert (finding.status, finding.part, finding.line) == ("fail", "evaluation", 20)
    assert "validation_freq=5" in finding.advice
    assert "batches of 16 can be larger" in finding.advice
    # One of twenty stays.
    assert finding.saved_s == pytest.approx(38.0)
    assert finding.speedup_at_most == pytest.approx(20.0)


def test_an_own_call_is_named_as_it_is_written() -> None:
    finding = only(costly_evaluation, session_with(evaluated(40.0, what="`evaluate`", line=33)))
    assert finding.line == 33
    assert "`evaluate`: do it every few epochs" in finding.advice
    assert "validation_freq" not in finding.advice
    assert "Larger batches" in finding.advice


def test_a_loop_that_evaluates_is_one_of_the_script_s() -> None:
    row = evaluated(40.0, what="a loop that evaluates", line=48)
    loop = make_loop(id="loop_2", kind="eager", role="other", line=48, batch_size=8)
    loop = loop.model_copy(update={"keras": None, "iterators": 20})
    finding = only(costly_evaluation, session_with(row, loops=[make_loop(), loop]))
    assert "A loop that evaluates: do it every few epochs" in finding.advice
    assert finding.evidence["batch_size"] == 8


def test_a_loop_that_evaluates_twice_has_two_iterators() -> None:
    row = evaluated(40.0, what="a loop that evaluates", line=48, count=4)
    loop = make_loop(id="loop_2", kind="eager", role="other", line=48, keras=None, iterators=2)
    session = session_with(row, loops=[make_loop(), loop])
    assert only(costly_evaluation, session).status == "informative"
    projected = session_with(
        row.model_copy(update={"basis": "projected"}), loops=[make_loop(), loop]
    )
    assert only(costly_evaluation, projected).status == "fail"


@pytest.mark.parametrize("count", [1, 2])
def test_the_test_after_a_training_may_take_its_time(count: int) -> None:
    row = evaluated(40.0, what="`evaluate`", line=60, count=count)
    finding = only(costly_evaluation, session_with(row))
    assert finding.status == "informative"
    assert "a run may well need" in finding.advice
    assert only(costly_evaluation, session_with(evaluated(4.0, count=count))).status == "pass"


@pytest.mark.parametrize(
    ("seconds", "status"), [(10.6, "fail"), (10.4, "informative"), (5.4, "informative")]
)
def test_either_side_of_the_limits(seconds: float, status: str) -> None:
    assert only(costly_evaluation, session_with(evaluated(seconds))).status == status


def test_little_evaluation_passes() -> None:
    assert only(costly_evaluation, session_with(evaluated(5.1))).status == "pass"
    assert only(costly_evaluation, session_with()).status == "pass"


def test_places_are_told_one_by_one() -> None:
    own = evaluated(30.0, what="`predict`", line=33)
    findings = run(costly_evaluation, session_with(evaluated(20.0), own))
    assert [one.line for one in findings] == [33, 20]


def test_a_try_of_a_few_seconds_is_only_informed() -> None:
    finding = only(costly_evaluation, session_with(evaluated(1.9), whole_s=4.0))
    assert finding.status == "informative"


def test_in_a_ledger_of_one_epoch_it_comes_with_each() -> None:
    epoch = session_with(evaluated(0.4, count=1), whole_s=2.0, scope="epoch")
    assert only(costly_evaluation, epoch).status == "fail"
