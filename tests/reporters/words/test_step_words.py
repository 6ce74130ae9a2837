"""The step and its ceiling in words, by hand-made numbers."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.reporters.words.step_words import (
    NOTHING_TO_GAIN,
    free_input,
    free_input_bounds,
    free_input_figure,
    loop_time,
)
from pipediag.session.model import Session
from pipediag.session.steps import Ceiling
from tests.factories import make_loop, make_loop_time, make_session
from tests.records import make_input_wait


def with_ceiling(speedup: float | None, loop: float | None = None, **overrides: Any) -> Session:
    ceiling = Ceiling(
        speedup_if_input_free=speedup,
        loop_speedup_if_input_free=loop,
        next_bottleneck="device_compute",
    )
    return make_session(ceiling=ceiling, **overrides)


def test_a_gain_worth_speaking_of_is_a_number() -> None:
    session = with_ceiling(3.33, 3.3)
    assert free_input(session) == "3.33x at most; then device compute limits"
    assert free_input_figure(session) == "3.33x"


@pytest.mark.parametrize("speedup", [1.0, 1.01, 1.049])
def test_a_gain_that_is_none_is_not_a_number(speedup: float) -> None:
    session = with_ceiling(speedup)
    assert free_input(session) == f"{NOTHING_TO_GAIN}; then device compute limits"
    assert free_input_figure(session) == NOTHING_TO_GAIN


def test_steps_and_loop_are_told_apart_where_they_gain_differently() -> None:
    session = with_ceiling(1.02, 5.2)
    said = "nothing to gain in the steps, 5.20x in the whole loop"
    assert str(free_input(session)).startswith(said)
    assert free_input_figure(session) == "5.20x"
    # A gain per step that is hardly one per run.
    assert free_input_figure(with_ceiling(4.0, 1.01)) == NOTHING_TO_GAIN


def test_a_repeated_batch_that_contradicts_is_named() -> None:
    wait = make_input_wait(native_percent=1.0, contested_by_percent=26.0)
    said = free_input(with_ceiling(1.01, input_wait=wait))
    assert "1.01x by tf.data's gap times, but on a repeated batch the step is 26.0" in str(said)


def fought_for(loop: float | None) -> Session:
    """Free input gains 2 times by the waits, and 3.33 by a repeated batch."""
    wait = make_input_wait(contention="python")
    return with_ceiling(2.0, loop, input_wait=wait, loops=[make_loop(time=make_loop_time())])


def test_where_the_consumer_alone_gains_more_both_measures_are_said() -> None:
    session = fought_for(None)
    assert free_input(session) == (
        "2.00x by tf.data's gap times, 3.33x by a repeated batch; then device compute limits"
    )
    assert free_input_figure(session) == "2.00x to 3.33x"
    assert free_input_bounds(session) is None


def test_the_whole_loop_gains_by_both_measures_too() -> None:
    session = fought_for(1.25)
    # Of 20 s, 16 are left by the waits, and 3 s of steps shrink by a fifth of themselves more.
    assert free_input(session) == (
        "2.00x by tf.data's gap times, 3.33x by a repeated batch, in the steps, 1.25x to 1.30x in "
        "the whole loop; then device compute limits"
    )
    assert free_input_figure(session) == "1.25x to 1.30x"


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert free_input(with_ceiling(None)) is None
    assert free_input_figure(make_session(ceiling=None)) is None
    assert loop_time(None) is None
    assert loop_time(make_loop()) is None


def test_where_a_loops_time_goes() -> None:
    said = loop_time(make_loop(time=make_loop_time(basis="measured")))
    assert str(said).replace("\N{NO-BREAK SPACE}", " ") == (
        "The loop took 20 s from its first step on: 15.0 % in steps; 80 % is waiting for the first "
        "batch of each epoch, 5 % is between epochs (validation, callbacks and other work)."
    )
    all_steps = make_loop_time(steps_s=20.0, first_batches_s=0.0, between_epochs_s=0.0)
    assert str(loop_time(make_loop(time=all_steps))).endswith("in steps.")


def test_the_interval_of_free_input_is_that_of_the_figure() -> None:
    session = make_session()
    assert session.ceiling is not None
    wide = session.ceiling.model_copy(update={"speedup_if_input_free": 3.0, "ci95": (2.5, 3.5)})
    of_loop = wide.model_copy(update={"loop_speedup_if_input_free": 1.4})
    small = wide.model_copy(update={"speedup_if_input_free": 1.01})
    given = [wide, of_loop, small, None]
    assert [free_input_bounds(session.model_copy(update={"ceiling": each})) for each in given] == [
        "2.50 to 3.50",
        None,
        None,
        None,
    ]
