"""The step and its ceiling in words, by hand-made numbers."""

from __future__ import annotations

from pipediag.reporters.words.step_words import free_input, loop_time
from pipediag.session.loops import Ceiling
from pipediag.session.model import Session
from tests.factories import make_loop, make_loop_time, make_session


def with_ceiling(speedup: float | None) -> Session:
    ceiling = Ceiling(speedup_if_input_free=speedup, next_bottleneck="device_compute")
    return make_session(ceiling=ceiling)


def test_free_input_is_one_upper_bound_with_what_limits_then() -> None:
    assert free_input(with_ceiling(3.33)) == "at most 3.33x; then device compute limits"


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert free_input(with_ceiling(None)) is None
    assert free_input(make_session(ceiling=None)) is None
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
