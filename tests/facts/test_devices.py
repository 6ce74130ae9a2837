"""The devices of a profile."""

from __future__ import annotations

import pytest

from pipediag.facts.devices import (
    block_start_ms,
    held_up,
)
from tests.reporters import trial_sessions
from tests.rules.devices import gap, gpu


def test_a_gap_of_several_causes_counts_for_each_with_its_part() -> None:
    both = gap("input", 10.0, causes_ms={"input": 6.0, "python": 4.0})
    device = gpu(gaps=[both, gap("sync", 3.0)])

    assert held_up(device, "python") == [(both, 4.0)]
    assert held_up(device, "copy") == []


def test_a_gap_of_which_only_the_largest_cause_is_known_counts_for_that() -> None:
    plain = gap("input", 10.0, causes_ms={})
    device = gpu(gaps=[plain])

    assert held_up(device, "input") == [(plain, 10.0)]
    assert held_up(device, "python") == []


@pytest.mark.parametrize(
    ("start_ms", "since_began_ms", "expected"),
    [(6000.0, 500.0, 6500.0), (None, 500.0, None), (6000.0, None, None)],
)
def test_a_block_stands_on_the_clock_of_the_windows(
    start_ms: float | None, since_began_ms: float | None, expected: float | None
) -> None:
    run = trial_sessions.make_run(start_ms=start_ms)
    block = run.blocks[0].model_copy(update={"since_began_ms": since_began_ms})

    assert block_start_ms(run, block) == expected
