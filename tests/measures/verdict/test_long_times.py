"""Times that are longer than three or four digits: no power of ten stands in a sentence."""

from __future__ import annotations

import pytest

from pipediag.measures.verdict.decision import decide
from pipediag.measures.verdict.sentences import length
from tests.measures.verdict.test_decision import session
from tests.records import make_breakdown, make_steps


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.1234, "0.123 s"),
        (42.0, "42 s"),
        (999.4, "999 s"),
        (999.6, "16.7 min"),
        (3600.0, "60 min"),
        (59_940.0, "999 min"),
        (59_980.0, "16.7 h"),
        (7_200_000.0, "2,000.0 h"),
    ],
)
def test_a_duration_is_told_in_a_unit_that_fits(seconds: float, words: str) -> None:
    assert length(seconds) == words


@pytest.mark.parametrize(
    ("step_ms", "words"), [(1000.0, "(700 ms)"), (1427.0, "(999 ms)"), (1428.0, "(1 s)")]
)
def test_input_that_takes_a_second_of_the_step_is_told_in_seconds(
    step_ms: float, words: str
) -> None:
    shares = make_breakdown(step_ms, input_wait=70.0, device_compute=30.0)
    assert words in decide(session(breakdown=shares)).summary


def test_long_steps_are_told_with_all_their_milliseconds() -> None:
    steps = make_steps(mean_ms=12_345.6, median_ms=11_000.0, ci95_ms=(9_999.0, 11_222.2))
    (measured, *_) = decide(session(steps=steps)).reasons
    assert "mean 12,346 ms, median 11,000 ms (95 % interval 9999 to 11,222 ms)" in measured
