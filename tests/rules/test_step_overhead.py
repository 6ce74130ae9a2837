"""The fixed cost of starting each step from Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.facts.order import is_for_you_to_decide
from pipediag.rules.evaluation import SMALL_PREDICT
from pipediag.rules.step_overhead import (
    BATCH_CALLBACK,
    EAGER_EXECUTION,
    HOST_OVERHEAD,
    OWN_PYTHON,
    PREDICT_IN_STEP,
    SMALL_BATCH,
    XLA,
)
from pipediag.session.edits import (
    CompileFunction,
    ExtractStep,
    PredictOnBatch,
    SetModel,
    SetParameters,
)
from pipediag.session.model import HotLine, Session
from pipediag.session.recorded_loops import Callback, EagerStep, GraphStep, NestedCall
from pipediag.session.recording import Prediction
from pipediag.session.trials import PipelineAlone
from pipediag.trials.candidates import candidates, with_prediction_trial
from tests.factories import (
    make_compute_bound_session,
    make_host,
    make_keras,
    make_loop,
    make_session,
)
from tests.ledgers import make_part, make_run
from tests.records import make_breakdown, make_environment, make_steps
from tests.rules.sessions import batch, cases, changes, decided, decides, only, session_of, source

HOOK = Callback(name="Logger", file="train.py", line=30, batch_hooks=["on_train_batch_end"])
HOT = HotLine(
    file="train.py", line=33, function="Logger.on_train_batch_end", percent=40.0, thread="main"
)


def started(
    dispatch: float = 20.0, python: float = 32.0, wait: float = 0.0, **overrides: Any
) -> Session:
    compute = 100.0 - dispatch - python - wait
    breakdown = make_breakdown(
        input_wait=wait, dispatch=dispatch, python=python, device_compute=compute
    )
    return make_session(**{"breakdown": breakdown, **overrides})


def in_loop(dispatch: float = 20.0, python: float = 32.0, **loop: Any) -> Session:
    return started(dispatch, python, loops=[make_loop(**loop)])


def test_steps_that_share_a_call_are_for_the_user_to_decide_where_callbacks_see_batches() -> None:
    """What a callback writes of each batch would be lost: a log of 500 steps had 32 lines."""
    watched = in_loop(30.0, 10.0, keras=make_keras(callbacks=[HOOK]))
    assert only(HOST_OVERHEAD, started()).condition is None
    found = only(HOST_OVERHEAD, watched)
    assert found.condition == "if `Logger` may see one of 16 batches"
    assert is_for_you_to_decide(found)


OWN = {"kind": "tf_function", "keras": None, "step_functions": ["train.py:8 step"]}
SHARED = (SetModel({"steps_per_execution": 16}),)
TRIED, ADVISED = ("informative", SHARED), ("informative", None)


test_what_starting_each_step_costs = decides(
    HOST_OVERHEAD,
    {
        "Keras": (started(), ("fail", SHARED)),
        "own loop": (in_loop(**OWN), "fail"),
        "PyTorch": (started(environment=make_environment(keras_backend="torch")), ADVISED),
        "input first": (started(20.0, 20.0, wait=40.0), TRIED),
        "a callback": (
            started(
                host=make_host(hot_python=[HOT]),
                loops=[make_loop(keras=make_keras(callbacks=[HOOK]))],
            ),
            TRIED,
        ),
        "little": (started(8.0, 2.0), TRIED),
        "distributed": (in_loop(70.0, 0.0, kind="distributed", keras=None), "pass"),
    },
)


def batched(size: int, dispatch: float, python: float = 0.0, wait: float = 0.0) -> Session:
    session = started(dispatch, python, wait, steps=make_steps(batch_size=size))
    pipeline = session_of(source(), batch(size)).pipeline
    return session.but(pipeline=pipeline)


def larger(size: int) -> object:
    return (SetParameters("batch", {"batch_size": size}),)


def of_replicas(size: int) -> Session:
    steps, loops = make_steps(batch_size=size), [make_loop(replicas=4)]
    return started(40.0, 20.0, steps=steps, loops=loops, pipeline=None)


def exchanging(size: int, collective: float, replicas: int = 4) -> Session:
    shares = make_breakdown(dispatch=10.0, collective=collective, device_compute=90.0 - collective)
    steps, loops = make_steps(batch_size=size), [make_loop(replicas=replicas)]
    return started(breakdown=shares, steps=steps, loops=loops, pipeline=None)


test_a_batch_that_shares_the_cost_among_few_examples = decides(
    SMALL_BATCH,
    {
        "small": (batched(32, 40.0, 20.0), ("fail", larger(128))),
        "of one example": (batched(1, 40.0, 20.0), ("fail", larger(32))),
        "hardly any": (batched(32, 3.0), "pass"),
        "input first": (batched(32, 30.0, 20.0, wait=40.0), ("informative", larger(128))),
        "made by Keras": (started(40.0, 20.0, pipeline=None), "fail"),
        # A batch that is large enough for one device is small for four.
        "of replicas": (of_replicas(512), "fail"),
        "not scaled": (exchanging(256, 35.0), "informative"),
    },
)


def custom(**overrides: Any) -> Session:
    values = {"kind": "eager", "keras": None, "step_functions": [], **overrides}
    return make_session(loops=[make_loop(**values)])


EVERYWHERE = make_environment(run_functions_eagerly=True)
EAGER_FIT = [make_loop(keras=make_keras(run_eagerly=True))]
AS_GRAPH = ("fail", (SetModel({"run_eagerly": False}),))


@cases(
    {
        "a fit": (make_session(loops=EAGER_FIT), AS_GRAPH),
        "everywhere": (make_session(environment=EVERYWHERE), ("fail", None)),
        "an own loop": (custom(), ("fail", None)),
        "an own step": (
            custom(eager_steps=[EagerStep("step", "train.py", 20)]),
            ("fail", (CompileFunction("train.py", 20, "step"),)),
        ),
        "two steps": (
            custom(
                eager_steps=[
                    EagerStep("noise", "train.py", 10, "It draws from `rng`."),
                    EagerStep("discriminator", "train.py", 20),
                    EagerStep("generator", "train.py", 30),
                ],
                graph_step=GraphStep("train.py", 25, lacking="The step is in no loop."),
            ),
            (
                "fail",
                (
                    CompileFunction("train.py", 20, "discriminator"),
                    CompileFunction("train.py", 30, "generator"),
                ),
            ),
        ),
        "a step in the loop": (
            custom(graph_step=GraphStep("train.py", 20, ["rate"])),
            ("fail", (ExtractStep("train.py", 20, ("rate",)),)),
        ),
        "a step that can't be moved": (
            custom(graph_step=GraphStep("train.py", 20, lacking="It prints.")),
            ("fail", None),
        ),
    },
    "session, expected",
)
def test_a_step_that_runs_eagerly(session: Session, expected: object) -> None:
    finding = only(EAGER_EXECUTION, session)
    assert decided(EAGER_EXECUTION, session) == expected
    assert finding.line == (20 if finding.status == "fail" else None)


@pytest.mark.parametrize(("alone_ms", "speedup"), [(1.0, 4.0), (8.0, 2.5)])
def test_a_step_in_the_loop_gains_what_the_function_saves_of_it(
    alone_ms: float, speedup: float
) -> None:
    """Steps of 20 ms, of which 18 become 3, come no faster than batches from the pipeline."""
    own_ms, other_ms = [18.0] * 8, [3.0 + n / 100 for n in range(8)]
    step = GraphStep("train.py", 20, own_ms=own_ms, other_ms=other_ms, traced_ms=500.0)
    session = make_session(
        loops=[make_loop(kind="eager", keras=None, step_functions=[], graph_step=step)],
        steps=make_steps(mean_ms=20.0),
        pipeline_alone=PipelineAlone(step_ms=alone_ms, ci95_ms=None, blocks=5),
    )
    finding = only(EAGER_EXECUTION, session)
    assert candidates([finding]) == []
    trial = with_prediction_trial(session, finding).trial
    assert (trial.state, trial.once_s) == ("confirmed", 0.5)
    assert trial.speedup == pytest.approx(speedup, rel=0.02)


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


test_a_callback_of_each_batch = decides(
    BATCH_CALLBACK,
    {
        "slow": (hooked(line(50.0)), "fail"),
        # The clock tells what samples have missed.
        "clocked": (hooked(line(2.9), callback=CLOCKED), "fail"),
        "quick": (hooked(line(3.0)), "pass"),
        "input first": (hooked(line(50.0), breakdown=make_breakdown()), "informative"),
        "of epochs": (hooked(line(80.0), callback=EPOCHS), "pass"),
        "no samples": (hooked(host=None, host_missing="None."), "inconclusive"),
    },
)


def test_without_the_callback_what_the_device_computes_stays() -> None:
    shares = make_breakdown(10.0, input_wait=0.0, python=75.0, dispatch=5.0, device_compute=20.0)
    session = hooked(breakdown=shares, callback=replace(SLOW, step_percent=72.0))
    assert only(BATCH_CALLBACK, session).speedup_at_most == pytest.approx(5.0, rel=0.2)


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
        "under a millisecond": (own(AUC, 16.0, step_ms=6.0), "pass", None),
        # Beside other programs the profile of one sample said 5 %, its stacks 60 %.
        "samples of a long step": (own(LEAN, 5.0, step_ms=12.0), "fail", 30),
        "no sample": (own([], 60.0), "pass", None),
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


def test_predictions_in_each_step_that_were_timed_gain_what_they_save_of_it() -> None:
    """Of steps of 100 ms, two calls take 40 and 30 ms, and 4 ms each as `predict_on_batch`."""
    calls = [
        NestedCall(what="predict", file="/work/gan.py", line=n, percent=percent, ms=percent)
        for n, percent in ((12, 40.0), (13, 30.0))
    ]
    timed = [
        Prediction(
            "/work/gan.py", one.line, 64, calls=100,
            own_ms=[one.ms] * 8, other_ms=[4.0 + n / 100 for n in range(8)],
        )
        for one in calls
    ]  # fmt: skip
    loop = make_loop(
        keras=None, kind="tf_function", from_python=True, nested=calls, steps=100, file="gan.py"
    )
    session = make_session(
        loops=[loop],
        predictions=timed,
        steps=make_steps(mean_ms=100.0),
        run=make_run(make_part("evaluation", 1.0, file="/work/gan.py", line=12), whole_s=60.0),
    )
    found = PREDICT_IN_STEP.findings(session)
    assert [changes(one) for one in found] == [
        (PredictOnBatch("/work/gan.py", 12),),
        (PredictOnBatch("/work/gan.py", 13),),
    ]
    tried = [with_prediction_trial(session, one).trial for one in found]
    assert [one.state for one in tried] == ["confirmed"] * 2
    assert [one.speedup for one in tried] == [
        pytest.approx(100 / 64, rel=0.01),
        pytest.approx(100 / 74, rel=0.01),
    ]
    # The first step, before the loop is known, counts as an evaluation.
    assert only(SMALL_PREDICT, session).status == "pass"


def test_overhead_of_a_call_in_each_step_waits_for_that_call_to_go() -> None:
    call = NestedCall(what="predict", file="/work/gan.py", line=12, percent=47.0, ms=90.0)
    step = {"dispatch": 41.0, "python": 18.0, "device_compute": 41.0}
    loop = make_loop(**OWN, from_python=True, nested=[call])
    session = make_session(loops=[loop], breakdown=make_breakdown(**step))
    assert only(HOST_OVERHEAD, session).status == "informative"
    alone = make_session(loops=[replace(loop, nested=[])], breakdown=make_breakdown(**step))
    assert only(HOST_OVERHEAD, alone).status == "fail"


def computing(compute: float = 60.0, spec: str | None = None, **loop: Any) -> Session:
    values = {"keras": make_keras(jit_compile=False), "element_spec": spec, **loop}
    breakdown = make_breakdown(device_compute=compute, input_wait=100.0 - compute)
    return make_session(breakdown=breakdown, loops=[make_loop(**values)])


test_a_step_that_computes_is_tried_with_xla = decides(
    XLA,
    {
        "computes": (computing(), ("informative", (SetModel({"jit_compile": True}),))),
        "computes little": (computing(20.0), "pass"),
        "compiled": (computing(keras=make_keras(jit_compile=True)), "pass"),
        "shapes of an evaluation vary": (
            computing().but(loops=[*computing().loops, make_loop(id="loop_2", shapes_vary=True)]),
            "pass",
        ),
        "predicts on groups of rows": (
            computing().but(
                run=make_run(make_part("evaluation", 9.0, what="`predict` in the callback Rank"))
            ),
            "pass",
        ),
        "eager": (computing(keras=make_keras(run_eagerly=True, jit_compile=False)), "pass"),
        "shapes were seen to vary": (computing(shapes_vary=True), "pass"),
        "of any length": (computing(spec="TensorSpec(shape=(None, None), dtype=tf.int32)"), "pass"),
    },
)
