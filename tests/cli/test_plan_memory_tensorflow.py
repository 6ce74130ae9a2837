"""Plans of scripts that are run for them, against the peak of a native process."""

from __future__ import annotations

import sys

import pytest

from benchmarks.memory_plan import Shape, measured_bytes, predicted_bytes

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc"),
]


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(Shape("sgd", ((800_000, 32),)), id="sgd"),
        pytest.param(
            Shape("adagrad", ((300_000, 64), (200_000, 32))), id="adagrad", marks=pytest.mark.faults
        ),
    ],
)
def test_the_peak_of_the_first_steps_is_foreseen(shape: Shape) -> None:
    (measured,) = measured_bytes(shape, runs=1)

    assert 0.65 < predicted_bytes(shape) / measured < 1.35
