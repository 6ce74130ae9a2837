from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace.steps.repetition import repeats


def found(sequence: str, costs: list[int] | None = None) -> dict[str, float]:
    """Which letters may begin a step, with the share that is the same each time."""
    kinds = np.array([ord(letter) for letter in sequence], np.int64)
    lengths = np.array(costs or [10] * len(sequence), np.int64)
    return {chr(repeat.kind): repeat.same_share for repeat in repeats(kinds, lengths)}


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ("", {}),
        ("ababab", {"a": 1.0, "b": 1.0}),
        # `b` comes twice a step.
        ("abcbabcbabcb", {"a": 1.0, "c": 1.0}),
        # The order within a step may change; each kind has two stretches of 30.
        ("abcacbabc", {"a": 1.0}),
        # Twice is no repetition.
        ("abcabc", {}),
        # Two steps' worth may lie before the first, and from the last one on.
        ("xyzwababab", {"a": 1.0}),
        ("xyzwvababab", {}),
        ("abababxyz", {"b": 1.0}),
        # Of `a` 100 of 130 are the same; of `b`, which comes once less, 80 of 110.
        ("abxabababababa", {"a": 100 / 130}),
        # One of four: 60 of 90.
        ("abxabababa", {}),
    ],
)
def test_what_may_begin_a_step(sequence: str, expected: dict[str, float]) -> None:
    assert found(sequence) == pytest.approx(expected)


def test_what_differs_weighs_by_its_cost() -> None:
    # Stretches of `a`: 20, 20, 20 and once with an `x` of 100: three of four, but 60 of 180.
    assert found("abababaxba", [10] * 7 + [100, 10, 10]) == {}


def test_events_without_cost_are_no_steps() -> None:
    assert found("ababab", [0] * 6) == {}


@given(st.permutations("abcde"), st.integers(3, 6))
def test_whatever_comes_once_a_step_may_begin_it(step: list[str], steps: int) -> None:
    assert found("".join(step) * steps) == dict.fromkeys(step, 1.0)
