from __future__ import annotations

from pipediag.comparison.repeats import medians
from tests.comparison.sides import run_of, runs_of


def test_each_quantity_is_a_median_with_all_its_values() -> None:
    assert list(medians(runs_of(10.0, 14.0, 11.0))) == [
        "Mean step: 11 ms, the median of 10, 14 and 11",
        "Run: 22 s, the median of 20, 28 and 22",
        "Input wait: 20 % of the step, the median of 20, 20 and 20",
        "Overhead: 5 % of the step, the median of 5, 5 and 5",
    ]


def test_what_a_run_lacks_is_said_and_no_median_of_the_others_is_given() -> None:
    short = run_of(steps=None, steps_missing="Only 4 steps were seen.")
    assert next(medians([run_of(), short, run_of()])) == (
        "Mean step: not known of 1 of 3 runs: Only 4 steps were seen."
    )
