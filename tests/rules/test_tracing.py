"""Functions that are traced or compiled again and again, and arrays that their graphs hold."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.registry import run_rules
from pipediag.rules.tracing import GRAPH_CONSTANTS, LARGE_CONSTANTS, REPEATED_COMPILE, RETRACING
from pipediag.session.edits import CompileFunction
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunPart
from pipediag.session.model import Session
from tests.factories import make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.records import make_breakdown, make_function, make_operation, make_pipeline, make_steps
from tests.rules.sessions import cases, only, saved_s, session_of, source

COMPILING = make_breakdown(compile=40.0, device_compute=60.0)
STEP = "/work/train.py:8 train_step"
VARYING = {"element_spec": "TensorSpec(shape=(4, None))"}


def training(
    retraces: int = 0,
    breakdown: Any = COMPILING,
    traces: int | None = None,
    row: RunPart | None = None,
    **loop: Any,
) -> Session:
    counted = {} if traces is None else {"trace_count": traces}
    return make_session(
        steps=make_steps(retraces=retraces, **counted),
        loops=[make_loop(**loop)],
        breakdown=breakdown,
        run=None if row is None else make_run(row),
    )


def of_step(seconds: float, count: int) -> RunPart:
    return make_part(
        "compile", seconds, what="train_step", file="/work/train.py", line=8, count=count
    )


STEPS = {"step_functions": [STEP]}


@cases(
    {
        "retraced": (training(9, **STEPS), "fail", 10 / 6, None),
        "compiled": (training(), "fail", 10 / 6, None),
        # Each length is compiled once, which promises nothing for all steps.
        "compiled for each length": (training(**VARYING), "fail", None, None),
        "made anew": (training(traces=30, **STEPS), "fail", 10 / 6, None),
        # All but two of twenty traces go.
        "by the ledger": (training(9, row=of_step(30.0, 20), **STEPS), "fail", 10.0, 27.0),
        "compiled without a trace": (
            training(row=of_step(3.0, 1), **STEPS, **VARYING),
            "fail",
            None,
            None,
        ),
    },
    "session, status, at_most, saved",
)
def test_a_training_function_that_is_traced_again(
    session: Session, status: str, at_most: float | None, saved: float | None
) -> None:
    finding = only(RETRACING, session)
    assert finding.status == status
    assert finding.speedup_at_most == (at_most and pytest.approx(at_most, abs=0.001))
    assert saved_s(finding) == (saved and pytest.approx(saved))
    assert finding.part == ("steps" if saved is None else "compile")


def test_a_step_that_always_builds_its_graph_may_owe_it_all_its_work_on_the_host() -> None:
    host = make_breakdown(compile=30.0, python=40.0, dispatch=10.0, device_compute=20.0)
    # 30 of 100 s are 60 traces, of which two remain; 70 s are steps, of which the host works
    # for 84 % at most.
    session = training(58, host, 59, row=of_step(30.0, 60), **STEPS)
    finding = only(RETRACING, session)
    assert (finding.part, finding.speedup_at_most) == ("steps", pytest.approx(6.25))
    assert saved_s(finding) == pytest.approx(29.0 + 0.84 * 70.0)


@pytest.mark.parametrize(
    ("loop", "relaxed"),
    [
        ({"shapes_vary": True}, True),
        ({"shapes_vary": False}, False),
        ({"shapes_vary": True, "step_functions": [STEP, "train.py:90 other"]}, False),
        ({"shapes_vary": True, "kind": "keras"}, False),
    ],
)
def test_a_step_that_is_traced_for_each_shape_may_be_traced_for_all(
    loop: dict[str, Any], relaxed: bool
) -> None:
    finding = only(RETRACING, training(9, **{"kind": "tf_function", **STEPS, **loop}))
    assert (finding.edit is not None) == relaxed
    if finding.edit is not None:
        (change,) = finding.edit.changes
        assert isinstance(change, CompileFunction)
        assert change.reduce_retracing
        assert f"{change.file}:{change.line} {change.function}" == STEP


def compiled(seconds: float, count: int | None = 8, **overrides: Any) -> RunPart:
    """A row of the step of the `fit` at line 20, which is the loop of the factories."""
    values = {"what": "the step of `fit`", "file": "train.py", "line": 20, "count": count}
    return make_part("compile", seconds, **{**values, **overrides})


def session_with(*parts: RunPart, **overrides: Any) -> Session:
    return make_session(run=make_run(*parts, **overrides))


LENGTHS = (
    "(TensorSpec(shape=(None, None), dtype=tf.int32, name=None), "
    "TensorSpec(shape=(None,), dtype=tf.float32, name=None))"
)
OWN = {"what": "train_step", "line": 7}


def on_many_lengths(spec: str = LENGTHS, batching: str = "padded_batch", **loop: Any) -> Session:
    functions = ["train.py:7 train_step"]
    values = {"kind": "eager", "keras": None, "element_spec": spec, "step_functions": functions}
    return session_of(
        source(),
        make_operation("batched", batching, line=9),
        loops=[make_loop(**{**values, **loop})],
        run=make_run(compiled(30.0, 20, **OWN)),
    )


ONE_LENGTH = "TensorSpec(shape=(None, 40), dtype=tf.int32, name=None)"


@cases(
    {
        # One of the eight stays.
        "a model for each fold": (session_with(compiled(40.0)), "fail", 35.0),
        # Of twenty traces, two stay for many lengths.
        "many lengths": (on_many_lengths(), "fail", 27.0),
        "one length": (on_many_lengths(ONE_LENGTH), "fail", 28.5),
        "validation": (on_many_lengths(role="validation"), "fail", 28.5),
        "under 10 %": (session_with(compiled(11.4)), "informative", None),
        "of unknown length": (
            session_with(compiled(40.0), scope="epoch", projected_total_s=7.0),
            "pass",
            None,
        ),
        "three of Keras": (session_with(compiled(60.0, 3)), "fail", 40.0),
        "two of Keras": (session_with(compiled(60.0, 2)), "pass", None),
        "four of its own": (session_with(compiled(60.0, 4, **OWN)), "fail", 45.0),
        # A function of one's own makes its variables in a trace of its own.
        "three of its own": (session_with(compiled(60.0, 3, **OWN)), "pass", None),
    },
    "session, status, saved",
)
def test_what_is_traced_and_compiled_again(
    session: Session, status: str, saved: float | None
) -> None:
    finding = only(REPEATED_COMPILE, session)
    assert finding.status == status
    assert saved_s(finding) == (saved and pytest.approx(saved))


@pytest.mark.parametrize(("first_traces", "status"), [(3, "fail"), (2, "pass")])
def test_a_function_that_is_made_anew_needs_fewer_traces(first_traces: int, status: str) -> None:
    loop = make_loop(
        kind="eager", keras=None, step_functions=["train.py:7 make.<locals>.train_step"]
    )
    session = session_of(source(), loops=[loop], run=make_run(compiled(60.0, 3, **OWN)))
    session = session.but(steps=make_steps(trace_count=first_traces))
    assert only(REPEATED_COMPILE, session).status == status


def test_retraces_in_the_steps_are_told_by_the_rule_on_them() -> None:
    session = session_with(compiled(40.0, **OWN))
    session = session.but(steps=make_steps(retraces=40))
    finding = next(f for f in run_rules(session) if f.title == REPEATED_COMPILE.title)
    assert (finding.status, finding.needs_first) == ("informative", "retracing")


def in_a_map(megabytes: float | None) -> Finding:
    held = None if megabytes is None else round(megabytes * 1e6)
    op = make_operation(line=12, function=make_function(constant_bytes=held))
    pipeline = make_pipeline(ops=[op], bottleneck_op_id=None)
    return only(GRAPH_CONSTANTS, make_session(pipeline=pipeline))


def test_an_array_that_is_written_into_a_graph() -> None:
    in_map = in_a_map(1_500.0)
    assert (in_map.status, in_map.severity, in_map.line) == ("fail", "warn", 12)
    loops = [make_loop(constant_bytes=900_000_000)]
    in_step = only(GRAPH_CONSTANTS, make_session(loops=loops, pipeline=None))
    assert (in_step.status, in_step.line) == ("fail", loops[0].line)
    assert in_a_map(None).status == "pass"
    statuses = [in_a_map(mb).status for mb in (LARGE_CONSTANTS.value, LARGE_CONSTANTS.value - 1)]
    assert statuses == ["fail", "pass"]


def test_the_error_that_ended_a_script_is_explained() -> None:
    session = make_session()
    refusal = "ValueError: Cannot create a tensor proto whose content is larger than 2GB."
    script = session.script.but(detail=refusal, outcome="raised")
    finding = only(GRAPH_CONSTANTS, session.but(script=script))
    assert (finding.status, finding.severity) == ("fail", "error")
