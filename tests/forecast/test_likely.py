"""How wide the range of a prediction is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipediag.forecast import likely_range

MEASURED = Path(__file__).parents[2] / "benchmarks" / "results" / "prediction.md"
ROW = re.compile(r"\| `\w+` \| `[^`]+` \| ([\d.]+)x \| ([\d.]+)x ")


def test_large_gains_may_be_off_by_more_up_to_a_limit() -> None:
    widths = [high / low for low, high in map(likely_range, (1.0, 1.2, 2.0, 5.0, 50.0))]

    assert widths[1] < widths[2] < widths[3]
    assert widths[0] == pytest.approx(widths[1], rel=1e-2)
    assert widths[-1] == pytest.approx(widths[-2], rel=1e-2) == pytest.approx(1.6**2, rel=1e-2)


@pytest.mark.parametrize("speedup", [0.5, 1.0, 1.3, 4.0])
def test_the_prediction_is_within_its_range(speedup: float) -> None:
    low, high = likely_range(speedup)

    assert low < speedup < high


def test_nine_in_ten_of_the_measured_predictions_lie_within() -> None:
    rows = [tuple(map(float, found)) for found in ROW.findall(MEASURED.read_text("utf-8"))]
    within = [
        low <= measured <= high
        for (low, high), measured in (
            (likely_range(predicted), measured) for predicted, measured in rows
        )
    ]

    assert len(rows) > 40
    assert sum(within) >= 0.9 * len(rows)
