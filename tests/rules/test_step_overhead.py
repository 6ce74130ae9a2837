from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.step_overhead import EAGER_EXECUTION, HOST_OVERHEAD, SMALL_BATCH
from pipediag.session.edits import Edit, SetModel, SetParameters
from pipediag.session.model import HotLine, Session
from pipediag.session.recorded_loops import Callback
from tests.factories import make_host, make_keras, make_loop, make_session
from tests.records import make_breakdown, make_environment, make_steps
from tests.rules.sessions import batch, only, session_of, source

OVERHEAD = make_breakdown(dispatch=20.0, python=32.0, device_compute=48.0)
HOOK = Callback(name="Logger", file="train.py", line=30, batch_hooks=["on_train_batch_end"])


def session_with(**loop: Any) -> Session:
    return make_session(breakdown=OVERHEAD, loops=[make_loop(**loop)])


def test_keras_gets_steps_per_execution() -> None:
    finding = only(HOST_OVERHEAD, session_with())
    assert (finding.status, finding.line) == ("fail", 20)


def test_on_pytorch_keras_refuses_several_steps_a_call() -> None:
    session = session_with()
    environment = session.environment.model_copy(update={"keras_backend": "torch"})
    finding = only(HOST_OVERHEAD, session.model_copy(update={"environment": environment}))
    assert finding.status == "informative"
    assert finding.edit is None


KERAS_STEP = "site-packages/keras/src/backend/tensorflow/trainer.py:131 one_step_on_data"


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        ({"keras": make_keras(run_eagerly=True)}, "eager-execution"),
        ({"kind": "eager", "keras": None}, "eager-execution"),
        ({"keras": make_keras(steps_per_execution=8)}, "8 steps share"),
    ],
)
def test_only_informs_where_another_edit_comes_first(loop: dict[str, Any], words: str) -> None:
    finding = only(HOST_OVERHEAD, session_with(**loop))
    assert finding.status == "informative"


def test_overhead_while_the_input_is_the_bottleneck_it_only_informs() -> None:
    breakdown = make_breakdown(input_wait=40.0, dispatch=20.0, python=20.0)
    finding = only(HOST_OVERHEAD, make_session(breakdown=breakdown))
    assert (finding.status, finding.edit is not None) == ("informative", True)


def test_callbacks_of_the_user_are_left_to_their_own_rule() -> None:
    hot = HotLine(
        file="train.py", line=33, function="Logger.on_train_batch_end", percent=40.0, thread="main"
    )
    session = session_with(keras=make_keras(callbacks=[HOOK]))
    session = session.model_copy(update={"host": make_host(hot_python=[hot])})
    assert only(HOST_OVERHEAD, session).status == "informative"


def test_overhead_that_is_not_python_only_informs() -> None:
    breakdown = make_breakdown(dispatch=30.0, python=2.0, device_compute=68.0)
    finding = only(HOST_OVERHEAD, make_session(breakdown=breakdown))
    assert finding.status == "informative"


def test_less_overhead_than_is_high_is_tried_all_the_same() -> None:
    for dispatch, python in ((8.0, 2.0), (30.0, 2.0)):
        shares = make_breakdown(
            dispatch=dispatch, python=python, device_compute=100.0 - dispatch - python
        )
        finding = only(HOST_OVERHEAD, make_session(breakdown=shares))
        assert (finding.status, finding.edit is not None) == ("informative", True)
    own_loop = make_loop(keras=None, kind="tf_function", step_functions=["train.py:8 step"])
    assert only(HOST_OVERHEAD, make_session(breakdown=shares, loops=[own_loop])).edit is None
    little = make_breakdown(dispatch=2.9, device_compute=97.1)
    assert only(HOST_OVERHEAD, make_session(breakdown=little)).status == "pass"


def test_little_overhead_beside_much_input_is_tried_last() -> None:
    finding = only(HOST_OVERHEAD, make_session())
    assert (finding.status, finding.edit is not None) == ("informative", True)


@pytest.mark.parametrize("kind", ["in_graph", "distributed"])
def test_it_says_nothing_of_loops_that_its_edit_does_not_fit(kind: str) -> None:
    shares = make_breakdown(dispatch=70.0, device_compute=30.0)
    loops = [make_loop(kind=kind, keras=None)]
    assert only(HOST_OVERHEAD, make_session(breakdown=shares, loops=loops)).status == (
        "not-applicable"
    )
    idle = make_breakdown(dispatch=2.0, device_compute=98.0)
    assert only(HOST_OVERHEAD, make_session(breakdown=idle, loops=loops)).status == "pass"


def test_missing_breakdown_is_inconclusive() -> None:
    assert only(HOST_OVERHEAD, make_session(breakdown=None)).status == "inconclusive"


def test_tries_steps_per_execution() -> None:
    edit = only(HOST_OVERHEAD, session_with()).edit
    assert edit is not None
    assert (edit.id, edit.caveat) == ("host-overhead", None)
    assert edit.changes == (SetModel({"steps_per_execution": 16}),)


def test_a_custom_loop_is_not_tried() -> None:
    loop = {"kind": "eager", "keras": None, "step_functions": ["train.py:8 step"]}
    finding = only(HOST_OVERHEAD, session_with(**loop))
    assert finding.edit is None
    assert "your own training loop rewritten" in str(finding.trial.reason)


FIXED = make_breakdown(dispatch=40.0, python=20.0, device_compute=40.0)


def test_fails_at_the_batch_and_says_that_it_changes_training() -> None:
    finding = only(SMALL_BATCH, session_of(source(), batch(32), breakdown=FIXED))
    assert (finding.status, finding.line, finding.op_id) == ("fail", 9, "batch")
    assert finding.effect_on_results == "changes a hyper-parameter"
    assert finding.speedup_at_most == 4.0


def test_without_a_pipeline_it_points_to_the_loop() -> None:
    finding = only(SMALL_BATCH, make_session(breakdown=FIXED, pipeline=None))
    assert (finding.status, finding.line) == ("fail", 20)


@pytest.mark.parametrize(
    ("size", "fixed", "status"),
    [(256, 60.0, "informative"), (32, 20.0, "informative"), (32, 3.0, "pass")],
)
def test_a_larger_batch_is_tried_unless_no_trial_could_confirm_it(
    size: int, fixed: float, status: str
) -> None:
    shares = make_breakdown(dispatch=fixed, device_compute=100.0 - fixed)
    session = session_of(source(), batch(size), breakdown=shares, steps=make_steps(batch_size=size))
    finding = only(SMALL_BATCH, session)
    assert (finding.status, finding.edit is not None) == (status, status == "informative")


def test_a_large_batch_that_keras_makes_passes() -> None:
    session = make_session(breakdown=FIXED, steps=make_steps(batch_size=256), pipeline=None)
    assert only(SMALL_BATCH, session).status == "pass"


def test_batch_while_the_input_is_the_bottleneck_it_only_informs() -> None:
    breakdown = make_breakdown(input_wait=40.0, dispatch=30.0, python=20.0)
    finding = only(SMALL_BATCH, session_of(source(), batch(32), breakdown=breakdown))
    assert (finding.status, finding.edit is not None) == ("informative", True)


def test_missing_data_is_inconclusive() -> None:
    session = make_session(
        breakdown=FIXED, steps=make_steps(batch_size=None), loops=[make_loop(batch_size=None)]
    )
    assert only(SMALL_BATCH, session).status == "inconclusive"
    assert only(SMALL_BATCH, make_session(breakdown=None)).status == "inconclusive"


def test_tries_four_times_the_batch() -> None:
    assert only(SMALL_BATCH, session_of(source(), batch(32), breakdown=FIXED)).edit == Edit(
        id="small-batch:batch",
        label="batches of 128 in place of 32 from the batch in line 9",
        changes=(SetParameters("batch", {"batch_size": 128}),),
        caveat="It counts examples per second; how well the model learns from larger batches is "
        "not measured.",
    )


def test_batches_that_keras_makes_are_not_tried() -> None:
    finding = only(SMALL_BATCH, make_session(breakdown=FIXED, pipeline=None))
    assert finding.edit is None
    assert "Keras or your own code makes the batches" in str(finding.trial.reason)


def test_each_replica_gets_a_part_of_the_batch() -> None:
    """A batch that is large enough for one device is small for four."""
    loops, steps = [make_loop(replicas=4)], make_steps(batch_size=512)
    finding = only(SMALL_BATCH, make_session(breakdown=FIXED, loops=loops, steps=steps))

    assert finding.status == "fail"
    enough = make_session(
        breakdown=FIXED, loops=loops, steps=make_steps(batch_size=1024), pipeline=None
    )
    assert only(SMALL_BATCH, enough).status == "pass"


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
    finding = only(EAGER_EXECUTION, session)
    assert (finding.status, finding.line) == ("fail", 20)


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
    assert only(EAGER_EXECUTION, session).status == "pass"


def test_without_a_breakdown_it_still_speaks() -> None:
    loops = [make_loop(keras=make_keras(run_eagerly=True))]
    finding = only(EAGER_EXECUTION, make_session(loops=loops, breakdown=None))
    assert finding.status == "fail"
    assert finding.evidence["dispatch_and_python_percent"] is None


def test_without_a_loop() -> None:
    assert only(EAGER_EXECUTION, make_session(loops=[])).status == "not-applicable"


def test_tries_the_graph_of_a_compiled_model() -> None:
    session = make_session(loops=[make_loop(keras=make_keras(run_eagerly=True))])
    assert only(EAGER_EXECUTION, session).edit == Edit(
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
    finding = only(EAGER_EXECUTION, session)
    assert finding.edit is None
    assert words in str(finding.trial.reason)
