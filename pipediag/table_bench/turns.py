"""Two arms in turns, within a limit of time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

ROUNDS = 10
"""At most. Own choice: with more, each block is shorter, and a block is what counts."""
_FEWEST_CALLS = 3
_WARMUP_CALLS = 3
_SHARE = 0.9
"""Of the time that is left, for blocks: each goes on to the end of a call."""


@dataclass(frozen=True)
class Arm:
    """What takes a turn."""

    call: Callable[[], Any]
    """Gives the last result, which a device that works ahead may not have yet."""
    steps: int = 1
    """Of a call."""


def rounds_of(
    base: Arm,
    arm: Arm,
    until: float,
    settle: Callable[[Any], None],
    *,
    clock: Callable[[], float] = perf_counter,
) -> Iterator[tuple[float, float]]:
    """Milliseconds a step of both, round by round, each time in random order.

    Args:
        base: what the other is held against.
        arm: the other.
        until: no round begins that would not be over by then, by how long the longest one took.
        settle: waits until a result is there.
        clock: seconds.
    """
    order = random.Random(1)
    for warmed in (base, arm):
        for _ in range(_WARMUP_CALLS):
            settle(warmed.call())
    block_s = max(0.0, _SHARE * (until - clock()) / (2 * ROUNDS))
    longest_s = 0.0
    for _ in range(ROUNDS):
        began = clock()
        if began + longest_s > until:
            return
        took: dict[bool, float] = {}
        for is_base in order.sample((True, False), 2):
            took[is_base] = _block_ms(base if is_base else arm, block_s, settle, clock)
        longest_s = max(longest_s, clock() - began)
        yield took[True], took[False]


def _block_ms(
    arm: Arm, block_s: float, settle: Callable[[Any], None], clock: Callable[[], float]
) -> float:
    began, calls = clock(), 0
    while calls < _FEWEST_CALLS or clock() - began < block_s:
        result = arm.call()
        calls += 1
    settle(result)
    return (clock() - began) / (calls * arm.steps) * 1e3
