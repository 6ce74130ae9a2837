"""Blocks of steps of one variant: a warm-up, then what is measured. Counts and times alone."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

_SECOND = 1_000_000_000
_WARM_NS = 3 * _SECOND // 10
_WARM_STEPS = 3
_LONG_WARM_NS = 2 * _SECOND
_FEWEST_STEPS = 5
_LONG_NS = 3 * _SECOND
_FEWEST_LONG_STEPS = 2
_MOST_RESTARTS = 3

Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """A step that ended; `continuous` if nothing else came between its begin and its end."""

    now_ns: int
    continuous: bool = True
    traced: bool = False
    """True if a function was traced in it."""


Steps = Generator[None, Step, Result]
"""Resumed with each step."""


@dataclass(frozen=True)
class Timed:
    """Steps that count, and what the first one of the block took, its wait included."""

    steps: int
    elapsed_ns: int
    first_ns: int


def epoch_within(steps: int, settled_ns: Callable[[int], int]) -> Steps[Timed]:
    """Time as many steps as an epoch has, of an iterator that runs through all epochs.

    They begin behind the first one, whose wait no later epoch has, so that the end of an epoch and
    what comes of it are among them. As `first_ns` stands their mean: none of them waits more than
    the others for a start.
    """
    step = yield
    since_ns = settled_ns(step.now_ns)
    for _ in range(steps):
        step = yield
    elapsed_ns = settled_ns(step.now_ns) - since_ns
    return Timed(steps, elapsed_ns, elapsed_ns // steps)


def timed(
    begin: Callable[[], int],
    wanted_ns: int,
    settled_ns: Callable[[int], int],
    epoch_steps: int | None = None,
    restarts: int = _MOST_RESTARTS,
) -> Steps[Timed]:
    """Time steps from a fresh iterator on: the one that waits for the first batch, then others.

    Steps of an epoch that is over before there are enough of them are counted from that first step
    on, all of them: that is the epoch as it is. A longer epoch has a warm-up, as any block has.

    Args:
        begin: makes the iterator, and returns when that began.
        wanted_ns: time that the counted steps are to take.
        settled_ns: returns when an accelerator is through with the step that ended then.
        epoch_steps: steps behind the first one, beyond which the block does not go; None where an
            epoch's end is no limit.
        restarts: how often it may begin anew, where a step of the warm-up traces a function:
            meanwhile the pipeline fills its buffers.
    """
    began_ns = begin()
    step = yield
    since_ns = settled_ns(step.now_ns)
    first_ns = since_ns - began_ns
    # However long the wait was: in an epoch, buffers are to fill behind it.
    warm, warm_from_ns = (1, began_ns) if epoch_steps is None else (0, since_ns)
    last_ns: int | None = None
    behind = steps = elapsed_ns = 0
    while True:
        if last_ns is None:
            if step.traced and restarts:
                again = timed(begin, wanted_ns, settled_ns, epoch_steps, restarts - 1)
                return (yield from again)
            if _is_warm(warm + behind, step.now_ns - warm_from_ns):
                last_ns = settled_ns(step.now_ns)
        else:
            if step.continuous:
                steps, elapsed_ns = steps + 1, elapsed_ns + step.now_ns - last_ns
            last_ns = step.now_ns
            if _is_enough(steps, elapsed_ns, wanted_ns):
                return Timed(steps, elapsed_ns + settled_ns(last_ns) - last_ns, first_ns)
        if behind == epoch_steps:
            return Timed(behind, settled_ns(step.now_ns) - since_ns, first_ns)
        step = yield
        behind += 1


def _is_warm(steps: int, elapsed_ns: int) -> bool:
    """Return True once fresh buffers are full and autotune has found its settings."""
    return (steps >= _WARM_STEPS and elapsed_ns >= _WARM_NS) or elapsed_ns >= _LONG_WARM_NS


def _is_enough(steps: int, elapsed_ns: int, wanted_ns: int) -> bool:
    least_ns = wanted_ns if steps >= _FEWEST_STEPS else max(_LONG_NS, wanted_ns)
    return steps >= _FEWEST_LONG_STEPS and elapsed_ns >= least_ns
