from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.order import concluded
from pipediag.rules.registry import run_rules
from pipediag.rules.run import repeated_compile
from pipediag.session.ledger import Run, RunPart
from pipediag.session.model import Session
from tests.factories import make_keras, make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.records import make_operation, make_steps
from tests.rules.sessions import only, saved_s, session_of, source


def compiled(seconds: float, count: int | None = 8, **overrides: Any) -> RunPart:
    """Of the step of the `fit` at line 20, which is the loop of the factories."""
    values = {"what": "the step of `fit`", "file": "train.py", "line": 20, "count": count}
    return make_part("compile", seconds, **{**values, **overrides})


def session_with(*parts: RunPart, **overrides: Any) -> Session:
    return make_session(run=make_run(*parts, **overrides))


def test_a_model_for_each_fold_is_built_once_and_set_back() -> None:
    finding = only(repeated_compile, session_with(compiled(40.0)))
    assert (finding.status, finding.severity, finding.part) == ("fail", "warn", "compile")
    assert (finding.file, finding.line) == ("train.py", 20)
    assert "traced and compiled 8 times" in finding.advice
    assert "set_weights(initial)" in finding.advice
    # One of the eight stays.
    assert saved_s(finding) == pytest.approx(35.0)
    assert finding.speedup_at_most == pytest.approx(8.0)
    assert finding.evidence["traces"] == 8


def test_code_to_paste_names_the_line_and_the_model_and_sets_the_optimizer_back() -> None:
    advice = only(repeated_compile, session_with(compiled(40.0))).advice
    assert "compile one `Sequential` before the loop around line 20" in advice
    assert "`model.optimizer.build(model.trainable_variables)`" in advice
    assert "zip(model.optimizer.variables, fresh): v.assign(value)`; only then set" in advice
    assert "such as `model.optimizer.learning_rate`" in advice
    loop = make_loop(keras=make_keras(optimizer=None))
    plain = session_with(compiled(40.0)).model_copy(update={"loops": [loop]})
    assert "optimizer" not in only(repeated_compile, plain).advice


def test_what_compiling_takes_is_a_bound_and_never_a_trial() -> None:
    session = session_with(compiled(40.0))
    (finding,) = concluded(session, [only(repeated_compile, session)]).findings
    assert finding.trial.state == "not_tried"
    assert "ledger" in str(finding.trial.reason)
    assert finding.for_run is not None
    assert (finding.for_run.basis, finding.for_run.after_s) == ("at most", 65.0)


def test_a_function_made_in_a_loop_is_moved_out_of_it() -> None:
    finding = only(repeated_compile, session_with(compiled(30.0, what="train_step", line=7)))
    assert finding.status == "fail"
    assert "`train_step` was traced 8 times" in finding.advice
    assert "outside of any loop" in finding.advice
    assert "set_weights" not in finding.advice


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
    finding = only(repeated_compile, on_many_lengths())
    assert finding.status == "fail"
    assert "as its batches vary in length" in finding.advice
    assert "`@tf.function(reduce_retracing=True)` at line 7" in finding.advice
    assert "behind `padded_batch` at line 9: `.map(lambda x, y: (tf.pad(x," in finding.advice
    # Of twenty traces, two stay.
    assert saved_s(finding) == pytest.approx(27.0)
    assert finding.speedup_at_most == pytest.approx(10.0)


def test_buckets_are_padded_to_their_boundaries() -> None:
    advice = only(repeated_compile, on_many_lengths(batching="bucket_by_sequence_length")).advice
    assert "`bucket_by_sequence_length` at line 9 few boundaries" in advice
    assert "`pad_to_bucket_boundary=True`" in advice


def test_batches_of_another_form_are_padded_by_their_author() -> None:
    images = "TensorSpec(shape=(None, None, None, 3), dtype=tf.float32, name=None)"
    advice = only(repeated_compile, on_many_lengths(images)).advice
    assert "pad to multiples of 64 behind `padded_batch` at line 9." in advice
    assert "lambda" not in advice
    assert "Under XLA" not in only(repeated_compile, on_many_lengths(batching="batch")).advice


@pytest.mark.parametrize(
    "loop",
    [
        {"spec": "TensorSpec(shape=(None, 40), dtype=tf.int32, name=None)"},
        {"step_functions": ["train.py:70 train_step"]},
        {"role": "validation"},
    ],
)
def test_other_functions_are_told_of_python_numbers_as_well(loop: dict[str, Any]) -> None:
    finding = only(repeated_compile, on_many_lengths(**loop))
    assert "in place of Python numbers" in finding.advice
    assert saved_s(finding) == pytest.approx(28.5)


def test_all_places_are_added_up_and_the_worst_is_named() -> None:
    evaluate = compiled(6.0, what="the step of `evaluate`", line=22)
    finding = only(repeated_compile, session_with(compiled(8.0), evaluate))
    assert finding.status == "fail"
    assert finding.line == 20
    assert saved_s(finding) == pytest.approx(14.0 * 7 / 8)
    assert "in another place" in finding.advice


def test_xla_is_spoken_of_where_it_compiles() -> None:
    session = session_with(compiled(40.0))
    assert "jit_compile" not in only(repeated_compile, session).advice
    loop = make_loop(keras=make_keras(jit_compile=True))
    jitted = session.model_copy(update={"loops": [loop]})
    assert "jit_compile=False" in only(repeated_compile, jitted).advice


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
    assert only(repeated_compile, session_with(*parts)).status == "pass"


@pytest.mark.parametrize(
    ("seconds", "status"), [(11.5, "fail"), (11.4, "informative"), (5.8, "informative")]
)
def test_either_side_of_the_limit(seconds: float, status: str) -> None:
    assert only(repeated_compile, session_with(compiled(seconds))).status == status


@pytest.mark.parametrize(("what", "count"), [("the step of `fit`", 3), ("train_step", 4)])
def test_from_so_many_times_on_it_is_again(what: str, count: int) -> None:
    assert only(repeated_compile, session_with(compiled(60.0, count, what=what))).status == "fail"


def test_a_try_of_a_few_seconds_is_only_informed() -> None:
    short = session_with(compiled(1.9), whole_s=4.0)
    finding = only(repeated_compile, short)
    assert finding.status == "informative"
    assert "1.9 s" in finding.advice
    assert only(repeated_compile, session_with(compiled(2.1), whole_s=4.0)).status == "fail"


def test_retraces_in_the_steps_are_told_by_the_rule_on_them() -> None:
    session = session_with(compiled(40.0, what="train_step", line=7))
    session = session.model_copy(update={"steps": make_steps(retraces=40)})
    finding = next(f for f in run_rules(session) if f.rule == "repeated-compile")
    assert (finding.status, finding.needs_first) == ("informative", "retracing")


def test_a_ledger_of_an_epoch_knows_of_no_compiling() -> None:
    epoch = session_with(scope="epoch")
    assert only(repeated_compile, epoch).status == "not-applicable"


@pytest.mark.parametrize(
    ("seconds", "count", "status"),
    [(40.0, 8, "informative"), (5.8, 8, "informative"), (5.7, 8, "pass"), (40.0, 2, "pass")],
)
def test_where_the_length_of_the_run_is_not_known_it_weighs_in_what_was_seen(
    seconds: float, count: int, status: str
) -> None:
    row = compiled(seconds, count)
    session = session_with(scope="epoch", projected_total_s=7.0, seen=[row])
    finding = only(repeated_compile, session)
    assert finding.status == status
    if status == "informative":
        saved = round(seconds * 7 / 8)
        assert f"of the 100.0 s that were seen of the run, this could have saved {saved} %" in (
            finding.advice
        )
        assert (finding.line, saved_s(finding)) == (20, None)


def test_without_a_ledger() -> None:
    assert only(repeated_compile, make_session()).status == "not-applicable"
    lost = make_session(run_missing="Nothing was written down.")
    finding = only(repeated_compile, lost)
    assert (finding.status, finding.advice) == ("inconclusive", "Nothing was written down.")
    nothing: Run | None = None
    assert only(repeated_compile, make_session(run=nothing, loops=[])).status == "not-applicable"
