"""How far from a prediction a measurement may lie, by those that were held against each other."""

from __future__ import annotations

from math import exp, log

from pipediag.session.record import LikelyRange

OF_THE_GAIN = 0.45
"""Half of the range, of the predicted gain, both as logarithms: what is to gain more can be off by
more. By the 51 measured predictions of `benchmarks/results/prediction.md`, as the two below: 49
measurements lie within the range, and nine in ten is what is said of it, as these scripts are
known to the model."""

LEAST = 1.2
"""Half of the range at least, as a factor: two measurements of one edit differ by a fifth."""

MOST = 1.6
"""Half of the range at most: of large gains predictions were off by no more, relative to them."""


def likely_range(speedup: float) -> LikelyRange:
    """Both ends of the range in which nine in ten measurements of such a prediction lie.

    Args:
        speedup: the predicted one, throughput after the edit over that before it, above 0.
    """
    half = min(max(OF_THE_GAIN * log(max(speedup, 1.0)), log(LEAST)), log(MOST))
    return (round(speedup * exp(-half), 3), round(speedup * exp(half), 3))
