from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.order import concluded
from pipediag.rules.registry import run_rules
from pipediag.rules.tracing import GRAPH_CONSTANTS, LARGE_CONSTANTS, REPEATED_COMPILE, RETRACING
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run, RunPart
from pipediag.session.model import Session
from tests.factories import make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.records import make_breakdown, make_function, make_operation, make_pipeline, make_steps
from tests.rules.limits import Limit, stands
from tests.rules.sessions import only, run, saved_s, session_of, source

COMPILING = make_breakdown(compile=40.0, device_compute=60.0)


def test_retraces_fail() -> None:
    loop = make_loop(step_functions=["train.py:8 train_step"])
    session = make_session(steps=make_steps(retraces=9), loops=[loop], breakdown=COMPILING)
    finding = only(RETRACING, session)
    assert (finding.status, finding.line) == ("fail", 20)
    assert finding.speedup_at_most == pytest.approx(10 / 6, abs=0.001)


def test_compiling_without_retraces_is_xla() -> None:
    finding = only(RETRACING, make_session(breakdown=COMPILING))
    assert finding.status == "fail"


def test_a_function_that_is_made_anew_in_each_step_is_no_matter_of_shapes() -> None:
    spec = "TensorSpec(shape=(4,))"
    loop = make_loop(step_functions=["train.py:8 train_step"], element_spec=spec)
    steps = make_steps(retraces=0, trace_count=30)
    finding = only(RETRACING, make_session(steps=steps, loops=[loop], breakdown=COMPILING))
    assert finding.status == "fail"


def test_a_partial_last_batch_passes() -> None:
    assert only(RETRACING, make_session(steps=make_steps(retraces=2))).status == "pass"


def test_one_trace_passes() -> None:
    assert only(RETRACING, make_session()).status == "pass"


def test_without_a_breakdown_retraces_are_counted_and_nothing_is_predicted() -> None:
    finding = only(RETRACING, make_session(steps=make_steps(retraces=5), breakdown=None))
    assert finding.status == "fail"
    assert finding.speedup_at_most is None


def test_without_steps_it_is_inconclusive() -> None:
    assert only(RETRACING, make_session(steps=None)).status == "inconclusive"


def test_what_the_ledger_has_of_its_traces_is_what_can_be_had() -> None:
    loop = make_loop(step_functions=["/work/train.py:8 train_step"])
    row = make_part("compile", 30.0, what="train_step", file="/work/train.py", line=8, count=20)
    session = make_session(
        steps=make_steps(retraces=9), loops=[loop], breakdown=COMPILING, run=make_run(row)
    )
    finding = only(RETRACING, session)
    assert finding.part == "compile"
    assert saved_s(finding) == pytest.approx(27.0)
    assert finding.speedup_at_most == pytest.approx(10.0)


def test_what_xla_compiles_without_a_trace_is_in_the_steps() -> None:
    loop = make_loop(
        step_functions=["/work/train.py:8 train_step"], element_spec="TensorSpec(shape=(4, None))"
    )
    row = make_part("compile", 3.0, what="train_step", file="/work/train.py", line=8, count=1)
    session = make_session(
        steps=make_steps(retraces=0), loops=[loop], breakdown=COMPILING, run=make_run(row)
    )
    finding = only(RETRACING, session)
    assert (finding.part, saved_s(finding)) == ("steps", None)
    assert finding.speedup_at_most is None


def test_lengths_that_are_compiled_once_each_promise_nothing_for_all_steps() -> None:
    loop = make_loop(element_spec="TensorSpec(shape=(4, None))")
    session = make_session(steps=make_steps(retraces=0), loops=[loop], breakdown=COMPILING)
    finding = only(RETRACING, session)
    assert finding.speedup_at_most is None


def compiled(seconds: float, count: int | None = 8, **overrides: Any) -> RunPart:
    """Of the step of the `fit` at line 20, which is the loop of the factories."""
    values = {"what": "the step of `fit`", "file": "train.py", "line": 20, "count": count}
    return make_part("compile", seconds, **{**values, **overrides})


def session_with(*parts: RunPart, **overrides: Any) -> Session:
    return make_session(run=make_run(*parts, **overrides))


def test_a_model_for_each_fold_is_built_once_and_set_back() -> None:
    finding = only(REPEATED_COMPILE, session_with(compiled(40.0)))
    assert (finding.status, finding.severity, finding.part) == ("fail", "warn", "compile")
    assert (finding.file, finding.line) == ("train.py", 20)
    # One of the eight stays.
    assert saved_s(finding) == pytest.approx(35.0)
    assert finding.speedup_at_most == pytest.approx(8.0)
    assert finding.evidence["traces"] == 8


def test_what_compiling_takes_is_a_bound_and_never_a_trial() -> None:
    session = session_with(compiled(40.0))
    (finding,) = concluded(session, [only(REPEATED_COMPILE, session)]).findings
    assert finding.trial.state == "not_tried"
    assert "ledger" in str(finding.trial.reason)
    assert finding.for_run is not None
    assert (finding.for_run.basis, finding.for_run.after_s) == ("at most", 65.0)


def test_a_function_made_in_a_loop_is_moved_out_of_it() -> None:
    finding = only(REPEATED_COMPILE, session_with(compiled(30.0, what="train_step", line=7)))
    assert finding.status == "fail"


LENGTHS = (
    "(TensorSpec(shape=(None, None), dtype=tf.int32, name=None), "
    "TensorSpec(shape=(None,), dtype=tf.float32, name=None))"
)
STEP = "train.py:7 train_step"


def on_many_lengths(spec: str = LENGTHS, batching: str = "padded_batch", **loop: Any) -> Session:
    values = {"kind": "eager", "keras": None, "element_spec": spec, "step_functions": [STEP]}
    return session_of(
        source(),
        make_operation("batched", batching, line=9),
        loops=[make_loop(**{**values, **loop})],
        run=make_run(compiled(30.0, 20, what="train_step", line=7)),
    )


def test_a_function_that_is_traced_for_each_length_keeps_two_traces() -> None:
    finding = only(REPEATED_COMPILE, on_many_lengths())
    assert finding.status == "fail"
    # Of twenty traces, two stay.
    assert saved_s(finding) == pytest.approx(27.0)
    assert finding.speedup_at_most == pytest.approx(10.0)


@pytest.mark.parametrize(
    "loop",
    [
        {"spec": "TensorSpec(shape=(None, 40), dtype=tf.int32, name=None)"},
        {"step_functions": ["train.py:70 train_step"]},
        {"role": "validation"},
    ],
)
def test_other_functions_are_told_of_python_numbers_as_well(loop: dict[str, Any]) -> None:
    finding = only(REPEATED_COMPILE, on_many_lengths(**loop))
    assert saved_s(finding) == pytest.approx(28.5)


def test_all_places_are_added_up_and_the_worst_is_named() -> None:
    evaluate = compiled(6.0, what="the step of `evaluate`", line=22)
    finding = only(REPEATED_COMPILE, session_with(compiled(8.0), evaluate))
    assert finding.status == "fail"
    assert finding.line == 20
    assert saved_s(finding) == pytest.approx(14.0 * 7 / 8)


@pytest.mark.parametrize(
    "parts",
    [
        # A large model that is compiled once, and once more for the last batch.
        [compiled(60.0, count=1)],
        [compiled(60.0, count=2)],
        # A function of one's own makes its variables in a trace of its own.
        [compiled(60.0, count=3, what="train_step", line=7)],
        # Several stages, each of its own.
        [compiled(20.0, count=2), compiled(20.0, count=1, line=30)],
        [compiled(60.0, count=None)],
        # Seven eighths of 5 s are no 5 %.
        [compiled(5.0)],
        [],
    ],
)
def test_near_misses_pass(parts: list[RunPart]) -> None:
    assert only(REPEATED_COMPILE, session_with(*parts)).status == "pass"


@pytest.mark.parametrize(
    ("seconds", "status"), [(11.5, "fail"), (11.4, "informative"), (5.8, "informative")]
)
def test_either_side_of_the_limit(seconds: float, status: str) -> None:
    assert only(REPEATED_COMPILE, session_with(compiled(seconds))).status == status


@pytest.mark.parametrize(("what", "count"), [("the step of `fit`", 3), ("train_step", 4)])
def test_from_so_many_times_on_it_is_again(what: str, count: int) -> None:
    assert only(REPEATED_COMPILE, session_with(compiled(60.0, count, what=what))).status == "fail"


def test_a_try_of_a_few_seconds_is_only_informed() -> None:
    short = session_with(compiled(1.9), whole_s=4.0)
    finding = only(REPEATED_COMPILE, short)
    assert finding.status == "informative"
    assert only(REPEATED_COMPILE, session_with(compiled(2.1), whole_s=4.0)).status == "fail"


def test_retraces_in_the_steps_are_told_by_the_rule_on_them() -> None:
    session = session_with(compiled(40.0, what="train_step", line=7))
    session = session.model_copy(update={"steps": make_steps(retraces=40)})
    finding = next(f for f in run_rules(session) if f.title == REPEATED_COMPILE.title_failed)
    assert (finding.status, finding.needs_first) == ("informative", "retracing")


def test_a_ledger_of_an_epoch_knows_of_no_compiling() -> None:
    epoch = session_with(scope="epoch")
    assert only(REPEATED_COMPILE, epoch).status == "not-applicable"


@pytest.mark.parametrize(
    ("seconds", "count", "status"),
    [(40.0, 8, "informative"), (5.8, 8, "informative"), (5.7, 8, "pass"), (40.0, 2, "pass")],
)
def test_where_the_length_of_the_run_is_not_known_it_weighs_in_what_was_seen(
    seconds: float, count: int, status: str
) -> None:
    row = compiled(seconds, count)
    session = session_with(scope="epoch", projected_total_s=7.0, seen=[row])
    finding = only(REPEATED_COMPILE, session)
    assert finding.status == status
    if status == "informative":
        round(seconds * 7 / 8)
        assert (finding.line, saved_s(finding)) == (20, None)


def test_without_a_ledger() -> None:
    assert only(REPEATED_COMPILE, make_session()).status == "not-applicable"
    lost = make_session(run_missing="Nothing was written down.")
    finding = only(REPEATED_COMPILE, lost)
    assert (finding.status, finding.advice) == ("inconclusive", "Nothing was written down.")
    nothing: Run | None = None
    assert only(REPEATED_COMPILE, make_session(run=nothing, loops=[])).status == "not-applicable"


REFUSAL = "ValueError: Cannot create a tensor proto whose content is larger than 2GB."


def in_a_map(megabytes: float, **overrides: Any) -> Finding:
    function = make_function(constant_bytes=round(megabytes * 1e6))
    op = make_operation(line=12, function=function)
    values = {"pipeline": make_pipeline(ops=[op], bottleneck_op_id=None), **overrides}
    return only(GRAPH_CONSTANTS, make_session(**values))


def test_an_array_that_a_map_reads_is_told_with_its_line() -> None:
    finding = in_a_map(1_500.0)

    assert (finding.status, finding.severity, finding.line) == ("fail", "warn", 12)
    assert finding.evidence["limit_bytes"] == 2**31


def test_one_that_the_step_reads() -> None:
    loops = [make_loop(constant_bytes=900_000_000)]
    finding = only(GRAPH_CONSTANTS, make_session(loops=loops, pipeline=None))

    assert (finding.status, finding.line) == ("fail", loops[0].line)


def test_the_error_that_ended_a_script_is_explained() -> None:
    session = make_session()
    script = session.script.model_copy(update={"detail": REFUSAL, "outcome": "raised"})
    finding = only(GRAPH_CONSTANTS, session.model_copy(update={"script": script}))

    assert (finding.status, finding.severity) == ("fail", "error")


def test_small_ones_pass_and_what_was_not_read_is_not_judged() -> None:
    assert in_a_map(1.0).status == "pass"
    unread = make_operation(function=make_function())
    pipeline = make_pipeline(ops=[unread], bottleneck_op_id=None)
    (finding,) = run(GRAPH_CONSTANTS, make_session(pipeline=pipeline))
    assert finding.status == "not-applicable"


def test_its_limit() -> None:
    stands(Limit(GRAPH_CONSTANTS, LARGE_CONSTANTS, in_a_map, "fail", "pass"))
