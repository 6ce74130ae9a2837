from __future__ import annotations

import pytest

from pipediag.rules.step import retracing
from tests.factories import make_loop, make_session
from tests.records import make_breakdown, make_steps
from tests.rules.sessions import only

COMPILING = make_breakdown(compile=40.0, device_compute=60.0)


def test_retraces_fail() -> None:
    loop = make_loop(step_functions=["train.py:8 train_step"])
    session = make_session(steps=make_steps(retraces=9), loops=[loop], breakdown=COMPILING)
    finding = only(retracing, session)
    assert (finding.status, finding.line) == ("fail", 20)
    assert "train.py:8 train_step" in finding.advice
    assert finding.predicted_speedup == pytest.approx(10 / 6, abs=0.001)


def test_compiling_without_retraces_is_xla() -> None:
    finding = only(retracing, make_session(breakdown=COMPILING))
    assert finding.status == "fail"
    assert "jit_compile=False" in finding.advice


def test_a_partial_last_batch_passes() -> None:
    assert only(retracing, make_session(steps=make_steps(retraces=2))).status == "pass"


def test_one_trace_passes() -> None:
    assert only(retracing, make_session()).status == "pass"


def test_without_a_breakdown_retraces_are_counted_and_nothing_is_predicted() -> None:
    finding = only(retracing, make_session(steps=make_steps(retraces=5), breakdown=None))
    assert finding.status == "fail"
    assert finding.predicted_speedup is None
    assert finding.evidence["prediction_missing"]


def test_without_steps_it_is_inconclusive() -> None:
    assert only(retracing, make_session(steps=None)).status == "inconclusive"
