from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.rules.python_in_step import BATCH_CALLBACK, CAVEAT, OWN_PYTHON, PREDICT_IN_STEP
from pipediag.rules.registry import run_rules
from pipediag.session.edits import Edit, SkipCallback
from pipediag.session.findings import Finding
from pipediag.session.loops import NestedCall
from pipediag.session.model import HotLine, Session
from pipediag.session.recorded_loops import Callback
from pipediag.session.trials import NOT_TRIED
from tests.factories import (
    make_compute_bound_session,
    make_host,
    make_keras,
    make_loop,
    make_session,
)
from tests.records import make_breakdown, make_steps
from tests.rules.sessions import only

SLOW = Callback(name="Logger", file="train.py", line=30, batch_hooks=["on_train_batch_end"])
EPOCHS = Callback(name="Saver", file="train.py", line=40, batch_hooks=[])


def line(percent: float, **overrides: Any) -> HotLine:
    values: dict[str, Any] = {
        "file": "train.py",
        "line": 33,
        "function": "on_train_batch_end",
        "thread": "main",
    }
    return HotLine(percent=percent, **{**values, **overrides})


def session_with(*lines: HotLine, callback: Callback = SLOW) -> Session:
    loop = make_loop(keras=make_keras(callbacks=[callback]))
    host = make_host(hot_python=list(lines))
    return make_compute_bound_session(loops=[loop], host=host)


def test_fails_at_the_callback_and_names_its_hottest_line() -> None:
    fit = line(40.0, line=50, function="<module>")
    finding = only(BATCH_CALLBACK, session_with(line(15.0), line(35.0, line=34), fit))
    assert (finding.status, finding.file, finding.line) == ("fail", "train.py", 30)
    # All but the input may get shorter on the same CPUs.
    assert finding.speedup_at_most == 100.0


def test_the_steps_are_tried_without_its_batch_hooks() -> None:
    finding = only(BATCH_CALLBACK, session_with(line(50.0)))
    assert finding.edit == Edit(
        id="python-in-step:Logger:30",
        label="the batch hooks of Logger left out",
        changes=(SkipCallback("Logger", "train.py", 30),),
        caveat=CAVEAT,
    )
    assert finding.effect_on_results == "same results"
    assert finding.trial.reason == NOT_TRIED.reason


def test_qualified_names_count() -> None:
    hot = line(50.0, function="Logger.on_train_batch_end")
    assert only(BATCH_CALLBACK, session_with(hot)).status == "fail"


@pytest.mark.parametrize(
    "lines",
    [
        [line(3.0)],
        [line(80.0, function="<module>")],
        [line(80.0, thread="source")],
        [line(80.0, file="other.py")],
        [],
    ],
)
def test_near_misses_pass(lines: list[HotLine]) -> None:
    assert only(BATCH_CALLBACK, session_with(*lines)).status == "pass"


def test_while_the_input_is_the_bottleneck_it_only_informs() -> None:
    session = session_with(line(50.0)).model_copy(update={"breakdown": make_breakdown()})
    finding = only(BATCH_CALLBACK, session)
    assert (finding.status, finding.edit is not None) == ("informative", True)


def test_an_epoch_callback_is_none_of_its_business() -> None:
    session = session_with(line(80.0), callback=EPOCHS)
    assert only(BATCH_CALLBACK, session).status == "not-applicable"


def test_a_custom_loop_has_no_callbacks() -> None:
    session = make_session(loops=[make_loop(kind="eager", keras=None)])
    assert only(BATCH_CALLBACK, session).status == "not-applicable"


def test_without_stack_samples_it_is_inconclusive() -> None:
    loop = make_loop(keras=make_keras(callbacks=[SLOW]))
    session = make_session(loops=[loop], host=None, host_missing="Stacks were not sampled.")
    finding = only(BATCH_CALLBACK, session)
    assert (finding.status, finding.advice) == ("inconclusive", "Stacks were not sampled.")


def test_the_clock_tells_what_samples_have_missed() -> None:
    clocked = replace(SLOW, step_percent=27.0)
    finding = only(BATCH_CALLBACK, session_with(line(2.9), callback=clocked))
    assert finding.status == "fail"
    assert finding.evidence["callback_percent_of_step"] == 27.0
    assert finding.evidence["callback_percent_of_samples"] == 2.9


STEP = "train.py:8 train_step"
LEAN = [HotLine(file="/work/train.py", line=30, function="<module>", percent=40.0, thread="main")]
AUC = [
    HotLine(file="/work/train.py", line=33, function="roc_auc", percent=9.0, thread="main"),
    HotLine(file="/work/train.py", line=47, function="<module>", percent=5.0, thread="main"),
    HotLine(file="/work/data.py", line=6, function="parse", percent=60.0, thread="source"),
]


def session_of(lines: list[HotLine], python: float, wait: float = 0.0) -> Session:
    loop = make_loop(keras=None, kind="eager", step_functions=[STEP])
    breakdown = make_breakdown(python=python, input_wait=wait, device_compute=100.0 - python - wait)
    return make_session(loops=[loop], breakdown=breakdown, host=make_host(hot_python=lines))


def finding_of(
    lines: list[HotLine] = AUC, python: float = 62.0, wait: float = 0.0, **changes: Any
) -> Finding:
    return only(OWN_PYTHON, session_of(lines, python, wait).model_copy(update=changes))


def test_what_a_loop_does_on_the_host_in_each_step_has_its_lines() -> None:
    finding = finding_of()
    assert (finding.status, finding.severity) == ("fail", "warn")
    assert (finding.file, finding.line) == ("/work/train.py", 33)
    assert finding.trial.reason is not None


def test_a_loop_that_only_calls_its_function_passes() -> None:
    steps, short = make_steps(mean_ms=0.6), make_breakdown(0.6, python=23.0, device_compute=77.0)
    assert finding_of(LEAN, steps=steps, breakdown=short).status == "pass"


@pytest.mark.parametrize(
    ("step_ms", "percent", "status"),
    [(12.0, 29.0, "fail"), (12.0, 14.9, "pass"), (6.0, 16.0, "pass"), (1.1, 30.0, "fail")],
)
def test_of_a_long_step_a_smaller_share_matters(
    step_ms: float, percent: float, status: str
) -> None:
    """NumPy draws negatives in each step of 12 ms: 29 % of it was Python, and two lines' own."""
    breakdown = make_breakdown(step_ms, python=percent, device_compute=100.0 - percent)
    finding = finding_of(LEAN, steps=make_steps(mean_ms=step_ms), breakdown=breakdown)
    assert finding.status == status


def test_python_that_no_sample_met_is_told_without_a_place_in_it() -> None:
    finding = finding_of([], python=60.0)
    assert (finding.status, finding.line) == ("informative", make_loop().line)


def test_little_python_of_a_short_step_passes() -> None:
    steps, short = make_steps(mean_ms=0.5), make_breakdown(0.5, python=40.0, device_compute=60.0)
    assert finding_of(steps=steps, breakdown=short).status == "pass"


def test_a_step_that_waits_for_input_has_that_first() -> None:
    assert finding_of(python=40.0, wait=50.0).status == "informative"


def test_eager_steps_are_another_rules() -> None:
    session = make_session(loops=[make_loop(keras=None, kind="eager")], host=make_host())
    assert only(OWN_PYTHON, session).status == "not-applicable"


@pytest.mark.parametrize("rule", ["host-overhead", "small-batch"])
def test_what_shares_the_cost_of_a_call_yields_to_it(rule: str) -> None:
    def said(lines: list[HotLine]) -> str:
        found = run_rules(session_of(lines, python=60.0))
        return next(finding.status for finding in found if finding.rule == rule)

    assert (said(AUC), said([])) == ("informative", "fail")


def finding_with(what: str = "predict", percent: float = 81.0) -> Finding:
    call = NestedCall(what=what, file="/work/gan.py", line=12, percent=percent, ms=40.0)
    loop = make_loop(keras=None, kind="tf_function", from_python=True, nested=[call])
    return only(PREDICT_IN_STEP, make_session(loops=[loop]))


def test_a_prediction_in_each_step_has_its_line() -> None:
    finding = finding_with()
    assert (finding.status, finding.severity) == ("fail", "warn")
    assert (finding.file, finding.line) == ("/work/gan.py", 12)
    assert finding.speedup_at_most == pytest.approx(100 / 19)
    assert finding.trial.reason is not None


def test_a_small_part_of_the_step_passes() -> None:
    assert finding_with(percent=4.0).status == "pass"


def test_a_step_that_only_trains() -> None:
    session = make_session(loops=[make_loop(keras=None)])
    assert only(PREDICT_IN_STEP, session).status == "not-applicable"
