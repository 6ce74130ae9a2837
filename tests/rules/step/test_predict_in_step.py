from __future__ import annotations

import pytest

from pipediag.rules.step import predict_in_step
from pipediag.session.findings import Finding
from pipediag.session.loops import NestedCall
from tests.factories import make_loop, make_session
from tests.rules.sessions import only


def finding_with(what: str = "predict", percent: float = 81.0) -> Finding:
    call = NestedCall(what=what, file="/work/gan.py", line=12, percent=percent, ms=40.0)
    loop = make_loop(keras=None, kind="tf_function", from_python=True, nested=[call])
    return only(predict_in_step, make_session(loops=[loop]))


def test_a_prediction_in_each_step_has_its_line() -> None:
    finding = finding_with()
    assert (finding.status, finding.severity) == ("fail", "warn")
    assert (finding.file, finding.line) == ("/work/gan.py", 12)
    assert finding.advice.startswith("Call the model itself in place of `predict` at line 12: ")
    assert "It takes 81 % of each step (40 ms a call)" in finding.advice
    assert "`model(x, training=False)`" in finding.advice
    assert finding.speedup_at_most == pytest.approx(100 / 19)
    assert finding.trial.reason is not None


def test_an_evaluation_in_each_step_is_for_now_and_then() -> None:
    assert "evaluate every so many steps" in finding_with("evaluate").advice


def test_a_small_part_of_the_step_passes() -> None:
    assert finding_with(percent=4.0).status == "pass"


def test_a_step_that_only_trains() -> None:
    session = make_session(loops=[make_loop(keras=None)])
    assert only(predict_in_step, session).status == "not-applicable"


def test_a_call_of_more_than_a_second_is_said_in_seconds() -> None:
    call = NestedCall(what="predict", file="/work/gan.py", line=12, percent=50.0, ms=1074.0)
    loop = make_loop(keras=None, kind="tf_function", from_python=True, nested=[call])
    assert "(1.07 s a call)" in only(predict_in_step, make_session(loops=[loop])).advice
