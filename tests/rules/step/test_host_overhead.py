from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.step import host_overhead
from pipediag.session.edits import SetModel
from pipediag.session.host import HotLine
from pipediag.session.loops import Callback
from pipediag.session.model import Session
from tests.factories import make_host, make_keras, make_loop, make_session
from tests.records import make_breakdown
from tests.rules.sessions import only

OVERHEAD = make_breakdown(dispatch=20.0, python=32.0, device_compute=48.0)
HOOK = Callback(name="Logger", file="train.py", line=30, batch_hooks=["on_train_batch_end"])


def session_with(**loop: Any) -> Session:
    return make_session(breakdown=OVERHEAD, loops=[make_loop(**loop)])


def test_keras_gets_steps_per_execution() -> None:
    finding = only(host_overhead, session_with())
    assert (finding.status, finding.line) == ("fail", 20)
    assert "steps_per_execution=16" in finding.advice


def test_per_batch_callbacks_are_mentioned() -> None:
    finding = only(host_overhead, session_with(keras=make_keras(callbacks=[HOOK])))
    assert "Logger then works once for all of them" in finding.advice


def test_on_pytorch_keras_refuses_several_steps_a_call() -> None:
    session = session_with()
    environment = session.environment.model_copy(update={"keras_backend": "torch"})
    finding = only(host_overhead, session.model_copy(update={"environment": environment}))
    assert finding.status == "informative"
    assert "refuses" in finding.advice
    assert finding.edit is None


def test_a_custom_loop_gets_a_loop_in_the_graph() -> None:
    loop = {"kind": "eager", "keras": None, "step_functions": ["train.py:8 step"]}
    assert "tf.range(16)" in only(host_overhead, session_with(**loop)).advice


KERAS_STEP = "site-packages/keras/src/backend/tensorflow/trainer.py:131 one_step_on_data"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("train.py:8 step", "Then let a tf.function take its iterator"),
        (KERAS_STEP, "Then call `model.fit(dataset)`, compiled with `steps_per_execution=16`."),
    ],
)
def test_a_loop_without_an_iterator_is_told_to_make_a_dataset(function: str, words: str) -> None:
    loop = {"kind": "tf_function", "keras": None, "from_python": True}
    advice = only(host_overhead, session_with(**loop, step_functions=[function])).advice
    assert "Make a dataset of the arrays" in advice
    assert words in advice


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        ({"keras": make_keras(run_eagerly=True)}, "eager-execution"),
        ({"kind": "eager", "keras": None}, "eager-execution"),
        ({"keras": make_keras(steps_per_execution=8)}, "8 steps share"),
    ],
)
def test_only_informs_where_another_edit_comes_first(loop: dict[str, Any], words: str) -> None:
    finding = only(host_overhead, session_with(**loop))
    assert finding.status == "informative"
    assert words in finding.advice


def test_while_the_input_is_the_bottleneck_it_only_informs() -> None:
    breakdown = make_breakdown(input_wait=40.0, dispatch=20.0, python=20.0)
    finding = only(host_overhead, make_session(breakdown=breakdown))
    assert (finding.status, finding.edit is not None) == ("informative", True)
    assert "deal with the input first" in finding.advice


def test_callbacks_of_the_user_are_left_to_their_own_rule() -> None:
    hot = HotLine(
        file="train.py", line=33, function="Logger.on_train_batch_end", percent=40.0, thread="main"
    )
    session = session_with(keras=make_keras(callbacks=[HOOK]))
    session = session.model_copy(update={"host": make_host(hot_python=[hot])})
    assert only(host_overhead, session).status == "informative"


def test_overhead_that_is_not_python_only_informs() -> None:
    breakdown = make_breakdown(dispatch=30.0, python=2.0, device_compute=68.0)
    finding = only(host_overhead, make_session(breakdown=breakdown))
    assert finding.status == "informative"


def test_less_overhead_than_is_high_is_tried_all_the_same() -> None:
    for dispatch, python in ((8.0, 2.0), (30.0, 2.0)):
        shares = make_breakdown(
            dispatch=dispatch, python=python, device_compute=100.0 - dispatch - python
        )
        finding = only(host_overhead, make_session(breakdown=shares))
        assert (finding.status, finding.edit is not None) == ("informative", True)
    own_loop = make_loop(keras=None, kind="tf_function", step_functions=["train.py:8 step"])
    assert only(host_overhead, make_session(breakdown=shares, loops=[own_loop])).edit is None
    little = make_breakdown(dispatch=2.9, device_compute=97.1)
    assert only(host_overhead, make_session(breakdown=little)).status == "pass"


def test_little_overhead_beside_much_input_is_tried_last() -> None:
    finding = only(host_overhead, make_session())
    assert (finding.status, finding.edit is not None) == ("informative", True)


@pytest.mark.parametrize("kind", ["in_graph", "distributed"])
def test_it_says_nothing_of_loops_that_its_edit_does_not_fit(kind: str) -> None:
    shares = make_breakdown(dispatch=70.0, device_compute=30.0)
    loops = [make_loop(kind=kind, keras=None)]
    assert only(host_overhead, make_session(breakdown=shares, loops=loops)).status == (
        "not-applicable"
    )
    idle = make_breakdown(dispatch=2.0, device_compute=98.0)
    assert only(host_overhead, make_session(breakdown=idle, loops=loops)).status == "pass"


def test_missing_breakdown_is_inconclusive() -> None:
    assert only(host_overhead, make_session(breakdown=None)).status == "inconclusive"


def test_tries_steps_per_execution() -> None:
    edit = only(host_overhead, session_with()).edit
    assert edit is not None
    assert (edit.id, edit.caveat) == ("host-overhead", None)
    assert edit.changes == (SetModel({"steps_per_execution": 16}),)


def test_a_custom_loop_is_not_tried() -> None:
    loop = {"kind": "eager", "keras": None, "step_functions": ["train.py:8 step"]}
    finding = only(host_overhead, session_with(**loop))
    assert finding.edit is None
    assert "your own training loop rewritten" in str(finding.trial.reason)
