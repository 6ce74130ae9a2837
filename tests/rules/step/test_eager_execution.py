from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.step import eager_execution
from pipediag.session.edits import Edit, SetModel
from pipediag.session.model import Session
from tests.factories import make_keras, make_loop, make_session
from tests.records import make_environment
from tests.rules.sessions import only


def custom(**overrides: Any) -> Session:
    values = {"kind": "eager", "keras": None, "step_functions": [], **overrides}
    return make_session(loops=[make_loop(**values)])


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (make_session(loops=[make_loop(keras=make_keras(run_eagerly=True))]), "run_eagerly=True"),
        (
            make_session(environment=make_environment(run_functions_eagerly=True)),
            "run_functions_eagerly(True)",
        ),
        (custom(), "@tf.function"),
    ],
)
def test_fails_and_names_the_cause(session: Session, words: str) -> None:
    finding = only(eager_execution, session)
    assert (finding.status, finding.line) == ("fail", 20)
    assert words in finding.advice


@pytest.mark.parametrize(
    "session",
    [
        make_session(),
        custom(step_functions=["train.py:8 train_step"]),
        custom(updates_variables=False),
        custom(kind="tf_function"),
    ],
)
def test_graphs_pass(session: Session) -> None:
    assert only(eager_execution, session).status == "pass"


def test_without_a_breakdown_it_still_speaks() -> None:
    loops = [make_loop(keras=make_keras(run_eagerly=True))]
    finding = only(eager_execution, make_session(loops=loops, breakdown=None))
    assert finding.status == "fail"
    assert finding.evidence["dispatch_and_python_percent"] is None


def test_without_a_loop() -> None:
    assert only(eager_execution, make_session(loops=[])).status == "not-applicable"


def test_tries_the_graph_of_a_compiled_model() -> None:
    session = make_session(loops=[make_loop(keras=make_keras(run_eagerly=True))])
    assert only(eager_execution, session).edit == Edit(
        id="eager-execution",
        label="run_eagerly=False in compile",
        changes=(SetModel({"run_eagerly": False}),),
    )


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (make_session(environment=make_environment(run_functions_eagerly=True)), "whole process"),
        (custom(), "your own training loop rewritten"),
    ],
)
def test_says_why_it_is_not_tried(session: Session, words: str) -> None:
    finding = only(eager_execution, session)
    assert finding.edit is None
    assert words in str(finding.trial.reason)
