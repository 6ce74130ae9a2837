from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipediag.measures.trace_report import step_lateness
from pipediag.trace.steps.splitting import StepSplit, StepWindows
from pipediag.trace.summary import TraceSummary
from pipediag.vocabulary import StepBasis
from tests.measures.traces import make_split, make_trace

MS = 1_000_000
EPOCH = 1_700_000_000_000_000_000


def steps(starts_ms: list[int], first: int = 0, basis: StepBasis = "markers") -> StepSplit:
    starts = np.array(starts_ms, np.int64) * MS
    windows = np.column_stack((starts, starts + 10 * MS))
    numbers = tuple(range(first, first + len(starts_ms)))
    return replace(make_split(1), steps=StepWindows(windows, numbers, basis))


def host(starts_ms: list[int], epoch_ns: int | None = EPOCH, first: int = 0) -> TraceSummary:
    window = starts_ms[0] * MS, (starts_ms[-1] + 10) * MS
    return make_trace(steps=steps(starts_ms, first), epoch_ns=epoch_ns, window_ns=window)


def test_a_host_is_late_by_the_median_over_the_steps_that_all_have() -> None:
    # Steps 1 to 3 are common; the second host's clock begins 5 ms later.
    first = host([0, 10, 20, 30], first=0)
    second = host([7, 19, 95, 105], EPOCH + 5 * MS, first=1)

    late = step_lateness([("a", first), ("b", second)])

    # By 2, 4 and 70 ms.
    assert (late.ms, late.missing) == ([0.0, 4.0], None)


def test_one_host_is_compared_with_nobody() -> None:
    late = step_lateness([("a", host([0, 10]))])
    assert (late.ms, late.missing) == ([None], None)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (host([0, 10], None), "the file of b holds no absolute time"),
        (host([0, 10], EPOCH + 10**12), "recorded at different times"),
        (host([0, 10], first=7), "share no numbered step"),
        (make_trace(epoch_ns=EPOCH, steps=None, window_ns=(0, 10**8)), "share no numbered step"),
        (
            make_trace(epoch_ns=EPOCH, steps=steps([0, 10], basis="period")),
            "share no numbered step",
        ),
    ],
)
def test_says_why_starts_cannot_be_compared(other: TraceSummary, said: str) -> None:
    late = step_lateness([("a", host([0, 10])), ("b", other)])
    assert late.ms == [None, None]
    assert said in str(late.missing)
