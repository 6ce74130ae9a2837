from __future__ import annotations

from pipediag.facts.limits import (
    INPUT_BOUND,
    INPUT_BOUND_PERCENT,
    INPUT_FINE_PERCENT,
    INPUT_GAPS,
    INPUT_WAIT,
)


def test_the_limits_are_those_of_xprof() -> None:
    assert (INPUT_FINE_PERCENT, INPUT_BOUND_PERCENT) == (5.0, 20.0)
    assert INPUT_WAIT.value == INPUT_FINE_PERCENT
    assert INPUT_BOUND.value == INPUT_GAPS.value == INPUT_BOUND_PERCENT
