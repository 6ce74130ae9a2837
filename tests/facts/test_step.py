"""What the step consists of, and the most that free input gains."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.step import consumer_ms, lengths_vary, most_of_free_input, only_input_is_told
from pipediag.session.edits import Change, Edit, Remove, SetModel
from pipediag.session.loops import Ceiling, Differential
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.vocabulary import TrialState
from tests.factories import make_finding, make_loop, make_session
from tests.ledgers import make_waits
from tests.records import make_breakdown, make_environment, make_input_wait

HALF = Ceiling(speedup_if_input_free=2.0, next_bottleneck=None)
ON_ITS_CPUS = make_input_wait(native_percent=20.0, method="differential", contention="cpu")


@pytest.mark.parametrize(
    ("overrides", "ms"),
    [
        ({"ceiling": None}, 3.0),
        ({"ceiling": HALF}, 5.0),
        # Beside a pipeline on its CPUs it takes what it does not wait.
        ({"ceiling": HALF, "input_wait": ON_ITS_CPUS}, 8.0),
    ],
)
def test_the_consumer_takes_what_a_free_input_would_leave_of_the_step(
    overrides: dict[str, Any], ms: float
) -> None:
    session = make_session(breakdown=make_breakdown(10.0, input_wait=70.0), **overrides)
    assert consumer_ms(session) == pytest.approx(ms)


PAIR = (
    "(TensorSpec(shape=(None, None), dtype=tf.int32, name=None), "
    "TensorSpec(shape=(None,), dtype=tf.float32, name=None))"
)


@pytest.mark.parametrize(
    ("spec", "varies"),
    [
        (PAIR, True),
        ("TensorSpec(shape=(None, 40), dtype=tf.int32, name=None)", False),
        ("TensorSpec(shape=(None,), dtype=tf.int32, name=None)", False),
        ("TensorSpec(shape=<unknown>, dtype=tf.int32, name=None)", False),
    ],
)
def test_whether_lengths_vary_behind_the_batch(spec: str, varies: bool) -> None:
    assert lengths_vary(spec) == varies


def on(
    backend: str, *, computed: float = 0.0, interval: tuple[float, float] = (1.0, 3.0)
) -> Session:
    shares = make_breakdown(input_wait=2.0, device_compute=computed)
    wait = shares["input_wait"].but(ci95_percent=interval)
    environment = make_environment(keras_backend=backend)
    return make_session(environment=environment, breakdown={**shares, "input_wait": wait})


@pytest.mark.parametrize(
    ("session", "told"),
    [
        (on("torch"), True),
        (on("tensorflow"), False),
        (on("torch").but(breakdown=None), False),
        # More steps tell more where the input wait may be anything.
        (on("torch", interval=(3.0, 9.0)), True),
        (on("torch", interval=(3.0, 30.0)), False),
    ],
)
def test_what_pytorch_computes_on_the_cpu_is_not_divided(session: Session, told: bool) -> None:
    assert only_input_is_told(session) == told


def alone(share: float) -> Differential:
    step_ms = 10.0 * (1 - share / 100.0)
    return Differential(
        step_ms=step_ms, ci95_ms=(step_ms, step_ms), steps=30, input_share_percent=share
    )


def session_with(**overrides: Any) -> Session:
    """By its waits free input would make a step 2.5 times as fast, by a repeated batch 4 times."""
    ceiling = Ceiling(speedup_if_input_free=2.5, ci95=(2.3, 2.8), next_bottleneck="dispatch")
    values: dict[str, Any] = {
        "ceiling": ceiling,
        "input_wait": make_input_wait(contention="python"),
        "differential": alone(75.0),
        "loops": [make_loop(epoch_ends=2)],
        "run": make_waits(1.0, 16.0, 3.0, each_s=0.5),
    }
    return make_session(**{**values, **overrides})


def test_the_bound_is_the_largest_gain_of_all_measures_and_of_the_whole_loop() -> None:
    # Of 20 s, the steps' 16 s are 4 by the repeated batch, and the waits for first batches go.
    assert most_of_free_input(session_with()) == pytest.approx(20 / 7.0, abs=0.001)


@pytest.mark.parametrize(
    ("overrides", "most"),
    [
        ({}, 4.0),
        ({"differential": None}, 2.8),
        ({"breakdown": make_breakdown(input_wait=60.0, compile=10.0)}, 2.8),
        ({"ceiling": Ceiling(speedup_if_input_free=2.5, next_bottleneck=None)}, 4.0),
        ({"ceiling": Ceiling(speedup_if_input_free=None, next_bottleneck=None)}, None),
    ],
)
def test_without_the_loops_time_the_bound_is_of_the_steps(
    overrides: dict[str, Any], most: float | None
) -> None:
    found = most_of_free_input(session_with(run=None, **overrides))
    assert found == (None if most is None else pytest.approx(most))


@pytest.mark.parametrize(
    ("changes", "state", "most"),
    [
        ([Remove("map#1")], "confirmed", 6.5),
        ([Remove("map#1")], "refuted", 4.0),
        ([SetModel({"jit_compile": True})], "confirmed", 4.0),
    ],
)
def test_no_bound_is_below_what_a_trial_of_the_pipeline_gained(
    changes: list[Change], state: TrialState, most: float
) -> None:
    trial = Trial(state=state, reason=None, speedup=6.0, ci95=(5.5, 6.5), basis="step")
    edit = Edit(id="parallel-map:map#1", label="a change", changes=tuple(changes))
    session = session_with(run=None, findings=[make_finding(edit=edit, trial=trial)])
    assert most_of_free_input(session) == pytest.approx(most)
