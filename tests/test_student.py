from __future__ import annotations

import pytest

from pipediag.student import student_quantile


@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [  # W. S. Gosset's table, as in Abramowitz and Stegun, table 26.10; 1 degree is tan.
        (0.975, 1, 12.706204736),
        (0.975, 2, 4.302652730),
        (0.975, 10, 2.228138852),
        (0.995, 4, 4.604094871),
        (0.95, 30, 1.697260887),
        (0.975, 1e6, 1.959966),
        (0.5, 3, 0.0),
    ],
)
def test_quantiles_are_those_of_the_table(probability: float, freedom: float, value: float) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(value, rel=1e-6, abs=1e-12)
    assert student_quantile(1 - probability, freedom) == pytest.approx(-value, rel=1e-6, abs=1e-12)


def test_freedom_need_not_be_whole() -> None:
    assert student_quantile(0.975, 3) > student_quantile(0.975, 3.5) > student_quantile(0.975, 4)


@pytest.mark.parametrize(("probability", "freedom"), [(0.0, 3), (1.0, 3), (0.9, 0)])
def test_what_is_out_of_range_is_refused(probability: float, freedom: float) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        student_quantile(probability, freedom)
