"""Blocks of steps with one arm alive: a warm-up, then what is measured. Counts and times alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

_SECOND = 1_000_000_000
_WARM_NS = 3 * _SECOND // 10
_WARM_STEPS = 3
_LONG_WARM_NS = 2 * _SECOND
_FEWEST_STEPS = 5
_LONG_NS = 3 * _SECOND
_FEWEST_LONG_STEPS = 2


@dataclass
class Warmup:
    """Fresh buffers fill and autotune finds its settings before anything is measured."""

    began_ns: int
    steps: int = 0

    def step(self, now_ns: int) -> bool:
        """Count a step that ended; return True if the warm-up is over."""
        self.steps += 1
        elapsed = now_ns - self.began_ns
        return (self.steps >= _WARM_STEPS and elapsed >= _WARM_NS) or elapsed >= _LONG_WARM_NS


@dataclass
class MeasuredSteps:
    """Steps in the order in which they come; those that something else interrupted are left out."""

    wanted_ns: int
    last_ns: int
    steps: int = 0
    elapsed_ns: int = 0

    def step(self, now_ns: int, continuous: bool) -> bool:
        """Count a step that ended; return True if there are enough of them."""
        if continuous:
            self.steps += 1
            self.elapsed_ns += now_ns - self.last_ns
        self.last_ns = now_ns
        return (self.steps >= _FEWEST_STEPS and self.elapsed_ns >= self.wanted_ns) or (
            self.steps >= _FEWEST_LONG_STEPS and self.elapsed_ns >= max(_LONG_NS, self.wanted_ns)
        )

    def settle(self, settled_ns: int) -> None:
        """Count the time in which an accelerator caught up with the last step."""
        self.elapsed_ns += settled_ns - self.last_ns
        self.last_ns = settled_ns


@dataclass
class EpochWithin:
    """A block of as many steps as an epoch has, of an iterator that runs through all epochs.

    They begin behind the first one, whose wait no later epoch has, so that the end of an epoch and
    what comes of it are among them.
    """

    steps_wanted: int
    settled_ns: Callable[[int], int]
    """When an accelerator is through with the step that ended then."""
    first_ns: int | None = None
    """One of its steps, in the mean: none of them waits more than the others for a start."""
    steps: int = 0
    elapsed_ns: int = 0
    warms_up: bool = False
    _since_ns: int | None = None

    def step(self, now_ns: int, continuous: bool) -> bool:  # noqa: ARG002
        """Count a step that ended; return True if the block is over."""
        if self._since_ns is None:
            self._since_ns = self.settled_ns(now_ns)
            return False
        self.steps += 1
        if self.steps < self.steps_wanted:
            return False
        self.elapsed_ns = self.settled_ns(now_ns) - self._since_ns
        self.first_ns = self.elapsed_ns // self.steps
        return True


@dataclass
class TimedBlock:
    """A block from its fresh iterator on: the step that waits for the first batch, then others.

    Steps of an epoch that is over before there are enough of them are counted from that first step
    on, all of them: that is the epoch as it is. A longer epoch has a warm-up, as any block has.
    """

    began_ns: int
    wanted_ns: int
    settled_ns: Callable[[int], int]
    """When an accelerator is through with the step that ended then."""
    epoch_steps: int | None = None
    """Behind the first one, beyond which it does not go; None where an epoch's end is no limit."""
    first_ns: int | None = None
    """What the first step took, its wait included."""
    steps: int = 0
    elapsed_ns: int = 0
    _since_ns: int = 0
    _behind_first: int = 0
    _warmup: Warmup = field(init=False)
    _measured: MeasuredSteps | None = None

    def __post_init__(self) -> None:
        self._warmup = Warmup(self.began_ns)

    @property
    def warms_up(self) -> bool:
        """Return True if none of its steps counts yet."""
        return self._measured is None

    def step(self, now_ns: int, continuous: bool) -> bool:
        """Count a step that ended; return True if the block is over."""
        if self.first_ns is None:
            self._since_ns = self.settled_ns(now_ns)
            self.first_ns = self._since_ns - self.began_ns
            if self.epoch_steps is not None:
                # However long the wait was: buffers are to fill behind it.
                self._warmup = Warmup(self._since_ns)
                return False
        else:
            self._behind_first += 1
        if self._over(now_ns, continuous):
            return True
        if self.epoch_steps is None or self._behind_first < self.epoch_steps:
            return False
        self.steps, self.elapsed_ns = self._behind_first, self.settled_ns(now_ns) - self._since_ns
        return True

    def _over(self, now_ns: int, continuous: bool) -> bool:
        """Return True if enough steps behind a warm-up have been measured."""
        if self._measured is None:
            if self._warmup.step(now_ns):
                self._measured = MeasuredSteps(self.wanted_ns, self.settled_ns(now_ns))
            return False
        if not self._measured.step(now_ns, continuous):
            return False
        self._measured.settle(self.settled_ns(now_ns))
        self.steps, self.elapsed_ns = self._measured.steps, self._measured.elapsed_ns
        return True
