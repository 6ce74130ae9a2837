from __future__ import annotations

import pytest

from pipediag.rules.step import retracing
from tests.factories import make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.records import make_breakdown, make_steps
from tests.rules.sessions import only, saved_s

COMPILING = make_breakdown(compile=40.0, device_compute=60.0)


def test_retraces_fail() -> None:
    loop = make_loop(step_functions=["train.py:8 train_step"])
    session = make_session(steps=make_steps(retraces=9), loops=[loop], breakdown=COMPILING)
    finding = only(retracing, session)
    assert (finding.status, finding.line) == ("fail", 20)
    assert "train.py:8 train_step" in finding.advice
    assert finding.speedup_at_most == pytest.approx(10 / 6, abs=0.001)


@pytest.mark.parametrize(
    ("keras", "from_python", "told"),
    [
        ("3.6.0", True, True),
        ("3.7.0", True, False),
        ("3.5.0", False, False),
        ("2.15.0", True, False),
    ],
)
def test_a_keras_that_retraces_each_call_of_train_on_batch_is_named(
    keras: str, from_python: bool, told: bool
) -> None:
    step = "keras/src/backend/tensorflow/trainer.py:117 TensorFlowTrainer.make_train_function.step"
    session = make_session(
        steps=make_steps(retraces=90),
        loops=[make_loop(keras=None, from_python=from_python, step_functions=[step])],
        breakdown=COMPILING,
    )
    environment = session.environment.model_copy(update={"keras": keras})
    finding = only(retracing, session.model_copy(update={"environment": environment}))
    assert ("Keras 3.7 or newer" in finding.advice) == told


def test_compiling_without_retraces_is_xla() -> None:
    finding = only(retracing, make_session(breakdown=COMPILING))
    assert finding.status == "fail"
    assert "jit_compile=False" in finding.advice


def test_a_function_that_is_made_anew_in_each_step_is_no_matter_of_shapes() -> None:
    spec = "TensorSpec(shape=(4,))"
    loop = make_loop(step_functions=["train.py:8 train_step"], element_spec=spec)
    steps = make_steps(retraces=0, trace_count=30)
    finding = only(retracing, make_session(steps=steps, loops=[loop], breakdown=COMPILING))
    assert finding.status == "fail"
    assert "Make train.py:8 train_step once, outside of the loop" in finding.advice
    assert "30 times" in finding.advice
    assert "jit_compile" not in finding.advice


def test_models_of_many_lengths_compile_for_each_shape() -> None:
    loop = make_loop(element_spec="TensorSpec(shape=(4, None))")
    steps = make_steps(retraces=0, trace_count=30)
    finding = only(retracing, make_session(steps=steps, loops=[loop], breakdown=COMPILING))
    assert "jit_compile=False" in finding.advice


def test_a_partial_last_batch_passes() -> None:
    assert only(retracing, make_session(steps=make_steps(retraces=2))).status == "pass"


def test_one_trace_passes() -> None:
    assert only(retracing, make_session()).status == "pass"


def test_without_a_breakdown_retraces_are_counted_and_nothing_is_predicted() -> None:
    finding = only(retracing, make_session(steps=make_steps(retraces=5), breakdown=None))
    assert finding.status == "fail"
    assert finding.speedup_at_most is None


def test_without_steps_it_is_inconclusive() -> None:
    assert only(retracing, make_session(steps=None)).status == "inconclusive"


def test_what_the_ledger_has_of_its_traces_is_what_can_be_had() -> None:
    loop = make_loop(step_functions=["/work/train.py:8 train_step"])
    row = make_part("compile", 30.0, what="train_step", file="/work/train.py", line=8, count=20)
    session = make_session(
        steps=make_steps(retraces=9), loops=[loop], breakdown=COMPILING, run=make_run(row)
    )
    finding = only(retracing, session)
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
    finding = only(retracing, session)
    assert (finding.part, saved_s(finding)) == ("steps", None)
    assert finding.speedup_at_most is None


def test_batches_that_vary_in_length_are_said_to() -> None:
    loop = make_loop(
        step_functions=["/work/train.py:8 train_step"], element_spec="TensorSpec(shape=(4, None))"
    )
    session = make_session(steps=make_steps(retraces=9), loops=[loop], breakdown=COMPILING)
    advice = only(retracing, session).advice
    assert "The batches of train.py:8 train_step vary in length" in advice
    assert "`input_signature` with None" in advice


def test_lengths_that_differ_in_a_loop_without_a_dataset_are_said_too() -> None:
    loop = make_loop(
        step_functions=["/work/train.py:8 train_step"], element_spec=None, shapes_vary=True
    )
    session = make_session(steps=make_steps(retraces=9), loops=[loop], breakdown=COMPILING)
    assert "vary in length" in only(retracing, session).advice


def test_lengths_that_are_compiled_once_each_promise_nothing_for_all_steps() -> None:
    loop = make_loop(element_spec="TensorSpec(shape=(4, None))")
    session = make_session(steps=make_steps(retraces=0), loops=[loop], breakdown=COMPILING)
    finding = only(retracing, session)
    assert finding.speedup_at_most is None
