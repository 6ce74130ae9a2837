"""Functions that are built again and again in a training that was stopped."""

from __future__ import annotations

import math

import pytest

from pipediag.session.recorded_windows import RecordedBlock
from tests.measures.run.runs import Rows, Written, ledger, own_loop, recording_of, rows
from tests.recordings import make_block, make_window

BUILT = ("compile", "train_step")
UNTRACED = make_block(40, 10.0, start_ms=4000.0)


def stopped(
    calls: list[float],
    block: RecordedBlock = UNTRACED,
    planned_steps: int | None = None,
    element_spec: str | None = None,
) -> Rows:
    """Steps for ten seconds, in which a function is built for half a second each time."""
    run = Written()
    run.span("script", 0.0, None)
    run.steps(0.0, 10.0)
    for begin in calls:
        run.span("first_call", begin, begin + 0.5, "train_step", 12)
        run.span("tracing", begin + 0.1, begin + 0.4)
    loop = own_loop(root_op_id=None, fill_ns=0, planned_steps=planned_steps)
    loop.element_spec = element_spec or loop.element_spec
    recording = recording_of(loop, windows=[make_window("baseline", block)])
    return rows(ledger(run, recording, 10.0, "stopped"))


def test_what_is_built_for_each_rate_comes_as_often_in_a_thousand_steps() -> None:
    found = stopped([0.0, 3.0, 6.0, 9.0])

    # Three calls in 804 steps of 10 ms, less the step that each of them made, but the first.
    assert found["steps", None] == pytest.approx(10.0)
    assert found[BUILT] == pytest.approx(3 * 0.49 * 1000 / 804, rel=1e-4)


@pytest.mark.parametrize("calls", [[0.0], [0.0, 5.0], [0.0, 0.6, 1.2, 1.8]])
def test_what_is_built_at_first_or_for_one_odd_batch_comes_once(calls: list[float]) -> None:
    assert list(stopped(calls)) == [("steps", None)]


def test_of_a_planned_training_the_rest_is_built_as_often() -> None:
    found = stopped([0.0, 3.0, 6.0, 9.0], planned_steps=1608)

    assert found[BUILT] == pytest.approx(0.49 + 2 * 3 * 0.49)
    assert found["steps", None] == pytest.approx(16.08)


def test_a_step_is_no_longer_by_what_is_traced_in_it() -> None:
    """Each of the baseline's ten steps of 0.5 s traces for 0.3 s, and is called again at once."""
    calls = [0.51 * number for number in range(19)]
    found = stopped(calls, make_block(9, 510.0, start_ms=5100.0))

    assert found["steps", None] == pytest.approx(210.0)
    # The last 0.31 s are steps in which nothing is built.
    assert found[BUILT] == pytest.approx(18 * 0.3 * 1000 / (19 + 0.31 / 0.21), rel=1e-4)


def test_of_batches_that_vary_in_length_fewer_and_fewer_are_new() -> None:
    calls = [0.0, 3.0, 6.0, 9.0]
    found = stopped(calls, element_spec="TensorSpec(shape=(4, None), dtype=tf.int64)")

    times = math.log1p(1000) / math.log1p(804)
    assert found[BUILT] == pytest.approx(3 * 0.49 * times, rel=1e-3)
