from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.registry import run_rules
from pipediag.rules.step import own_python
from pipediag.session.findings import Finding
from pipediag.session.host import HotLine
from pipediag.session.model import Session
from tests.factories import make_host, make_loop, make_session
from tests.records import make_breakdown, make_steps
from tests.rules.sessions import only

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
    return only(own_python, session_of(lines, python, wait).model_copy(update=changes))


def test_what_a_loop_does_on_the_host_in_each_step_has_its_lines() -> None:
    finding = finding_of()
    assert (finding.status, finding.severity) == ("fail", "warn")
    assert (finding.file, finding.line) == ("/work/train.py", 33)
    assert "Python takes 62 % of each step (6.2 ms)" in finding.advice
    assert "train.py:33 (`roc_auc`) and train.py:47 most often" in finding.advice
    assert "grow" not in finding.advice
    assert finding.trial.reason is not None


def test_steps_that_grow_say_why() -> None:
    grows = [1.0 + 0.1 * index for index in range(60)]
    finding = finding_of(steps=make_steps(samples_ms=grows))
    assert "Steps grow longer while the loop goes on, from 1.7 ms to 6.2 ms" in finding.advice


@pytest.mark.parametrize("steps", [{"samples_ms": [1.0, 9.0]}, {"seams": 2}])
def test_too_few_steps_or_several_epochs_tell_of_no_growth(steps: dict[str, Any]) -> None:
    grows = {"samples_ms": [1.0 + 0.1 * index for index in range(60)]} | steps
    assert "grow" not in finding_of(steps=make_steps(**grows)).advice


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
    assert only(own_python, session).status == "not-applicable"


@pytest.mark.parametrize("rule", ["host-overhead", "small-batch"])
def test_what_shares_the_cost_of_a_call_yields_to_it(rule: str) -> None:
    def said(lines: list[HotLine]) -> str:
        found = run_rules(session_of(lines, python=60.0))
        return next(finding.status for finding in found if finding.rule == rule)

    assert (said(AUC), said([])) == ("informative", "fail")
