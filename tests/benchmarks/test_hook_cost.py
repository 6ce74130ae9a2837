"""What hooks cost is told from made-up steps."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.comparison import UnusableRunError
from benchmarks.hook_cost import hook_cost


def made_up(turns: int, hooked_us: int, drift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Turns of 100 steps of 1 ms natively, on a machine that grows slower."""
    durations, aside = [], []
    for turn in range(turns):
        for _ in range(100):
            native = 1_000_000 * (1 + drift * turn)
            durations.append(native if turn % 2 else native + 1000 * hooked_us)
            aside.append(turn % 2 == 1)
    stamps = np.concatenate(([0], np.cumsum(durations))).astype(np.int64)
    return stamps, np.array([*aside, aside[-1]])


@pytest.mark.parametrize("hooked_us", [0, 30])
@pytest.mark.parametrize("drift", [0.0, 0.0002])
def test_what_hooks_take_is_found_on_a_machine_that_drifts(hooked_us: int, drift: float) -> None:
    cost = hook_cost(*made_up(120, hooked_us, drift))

    assert cost.native_ms == pytest.approx(1.0, rel=0.03)
    assert cost.hooks_us == pytest.approx(hooked_us, abs=1.0)
    assert cost.ratio.median == pytest.approx(1 + hooked_us / 1000, abs=0.001)
    assert cost.ratio.rounds == 55


def test_an_expensive_hook_misses_the_goal() -> None:
    assert hook_cost(*made_up(120, 30)).ratio.judgement == "missed"
    assert hook_cost(*made_up(120, 5)).ratio.judgement == "met"


def test_too_few_turns_are_no_answer() -> None:
    with pytest.raises(UnusableRunError, match="steps"):
        hook_cost(*made_up(20, 0))
