"""Python that runs in every step: callbacks, the script's own lines, calls of `predict`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.rules.step_overhead import BATCH_CALLBACK, OWN_PYTHON, PREDICT_IN_STEP
from pipediag.session.loops import NestedCall
from pipediag.session.model import HotLine, Session
from pipediag.session.recorded_loops import Callback
from tests.factories import (
    make_compute_bound_session,
    make_host,
    make_keras,
    make_loop,
    make_session,
)
from tests.records import make_breakdown, make_steps
from tests.rules.sessions import cases, only, tried

SLOW = Callback(name="Logger", file="train.py", line=30, batch_hooks=["on_train_batch_end"])
EPOCHS = Callback(name="Saver", file="train.py", line=40, batch_hooks=[])


def line(percent: float, **overrides: Any) -> HotLine:
    at = {"file": "train.py", "line": 33, "thread": "main", "function": "on_train_batch_end"}
    return HotLine(percent=percent, **{**at, **overrides})


def hooked(*lines: HotLine, callback: Callback = SLOW, **overrides: Any) -> Session:
    loop = make_loop(keras=make_keras(callbacks=[callback]))
    values = {"loops": [loop], "host": make_host(hot_python=list(lines)), **overrides}
    return make_compute_bound_session(**values)


CLOCKED = replace(SLOW, step_percent=27.0)


@cases(
    {
        "slow": (hooked(line(50.0)), ("fail", True)),
        "qualified": (hooked(line(50.0, function="Logger.on_train_batch_end")), ("fail", True)),
        # The clock tells what samples have missed.
        "clocked": (hooked(line(2.9), callback=CLOCKED), ("fail", True)),
        "quick": (hooked(line(3.0)), ("pass", False)),
        "another function": (hooked(line(80.0, function="<module>")), ("pass", False)),
        "another thread": (hooked(line(80.0, thread="source")), ("pass", False)),
        "input first": (hooked(line(50.0), breakdown=make_breakdown()), ("informative", True)),
        "of epochs": (hooked(line(80.0), callback=EPOCHS), ("pass", False)),
        "no samples": (hooked(host=None, host_missing="None."), ("inconclusive", False)),
    },
    "session, expected",
)
def test_a_callback_of_each_batch(session: Session, expected: object) -> None:
    assert tried(only(BATCH_CALLBACK, session)) == expected


LEAN = [line(40.0, file="/work/train.py", line=30, function="<module>")]
AUC = [
    line(9.0, file="/work/train.py", function="roc_auc"),
    line(5.0, file="/work/train.py", line=47, function="<module>"),
    line(60.0, file="/work/data.py", line=6, function="parse", thread="source"),
]


def own(
    lines: list[HotLine], python: float, wait: float = 0.0, step_ms: float = 10.0, **loop: Any
) -> Session:
    values = {"kind": "eager", "keras": None, "step_functions": ["train.py:8 train_step"], **loop}
    compute = 100.0 - python - wait
    return make_session(
        loops=[make_loop(**values)],
        steps=make_steps(mean_ms=step_ms),
        breakdown=make_breakdown(step_ms, python=python, input_wait=wait, device_compute=compute),
        host=make_host(hot_python=lines),
    )


@cases(
    {
        "much": (own(AUC, 62.0), "fail", 33),
        "a call alone": (own(LEAN, 23.0, step_ms=0.6), "pass", None),
        "a short step": (own(AUC, 40.0, step_ms=0.5), "pass", None),
        # NumPy draws negatives in each step of 12 ms: 29 % of it was Python, and two lines' own.
        "a long step": (own(LEAN, 29.0, step_ms=12.0), "fail", 30),
        "little of a long step": (own(LEAN, 14.9, step_ms=12.0), "pass", None),
        "under a millisecond": (own(LEAN, 16.0, step_ms=6.0), "pass", None),
        "30 %": (own(LEAN, 30.0, step_ms=1.1), "fail", 30),
        "no sample": (own([], 60.0), "informative", 20),
        "input first": (own(AUC, 40.0, wait=50.0), "informative", 33),
        "eager": (own([], 60.0, step_functions=[]), "pass", None),
    },
    "session, status, named",
)
def test_python_of_the_script_s_own(session: Session, status: str, named: int | None) -> None:
    finding = only(OWN_PYTHON, session)
    assert (finding.status, finding.line, finding.edit) == (status, named, None)


@pytest.mark.parametrize(
    ("what", "percent", "status"),
    [("predict", 81.0, "fail"), ("evaluate", 81.0, "fail"), ("predict", 4.0, "pass")],
)
def test_a_prediction_in_each_step(what: str, percent: float, status: str) -> None:
    call = NestedCall(what=what, file="/work/gan.py", line=12, percent=percent, ms=40.0)
    loop = make_loop(keras=None, kind="tf_function", from_python=True, nested=[call])
    finding = only(PREDICT_IN_STEP, make_session(loops=[loop]))
    assert (finding.status, finding.line) == (status, 12 if status == "fail" else None)
    assert finding.speedup_at_most == (pytest.approx(100 / 19) if status == "fail" else None)
