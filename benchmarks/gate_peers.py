"""Rules that others gate with: whether head fails, from the runs of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from statistics import fmean

from pipediag.session.model import Session

Rule = Callable[[Sequence[Session], Sequence[Session]], bool]

THRESHOLD_PERCENT = 10.0


def mean_of_steps(sessions: Sequence[Session]) -> float:
    """Milliseconds, of all measured steps."""
    return fmean(
        one for session in sessions if session.steps is not None for one in session.steps.samples_ms
    )


def threshold(base: Sequence[Session], head: Sequence[Session]) -> bool:
    """Whether the mean of all runs grew by more than `THRESHOLD_PERCENT`."""
    return mean_of_steps(head) > (1.0 + THRESHOLD_PERCENT / 100.0) * mean_of_steps(base)


def pytest_benchmark(base: Sequence[Session], head: Sequence[Session]) -> bool:
    """Its own check, which holds one run against the last that was stored."""
    from pytest_benchmark.utils import parse_compare_fail

    check = parse_compare_fail(f"mean:{THRESHOLD_PERCENT:g}%")
    current, stored = ({"mean": mean_of_steps(side[-1:])} for side in (head, base))
    return bool(check.fails(current, stored))


PEERS: dict[str, Rule] = {
    "mean + 10 %": threshold,
    **({"pytest-benchmark": pytest_benchmark} if find_spec("pytest_benchmark") else {}),
}
"""What is installed of them."""
