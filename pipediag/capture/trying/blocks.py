"""A stretch of steps with one arm alive: its warm-up, then what is measured. Counts and times."""

from __future__ import annotations

from dataclasses import dataclass

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
        """A step ended; returns whether the warm-up is over."""
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
        """A step ended; returns whether there are enough of them."""
        if continuous:
            self.steps += 1
            self.elapsed_ns += now_ns - self.last_ns
        self.last_ns = now_ns
        return self._enough()

    def settle(self, settled_ns: int) -> None:
        """Count the time in which an accelerator caught up with the last step."""
        self.elapsed_ns += settled_ns - self.last_ns
        self.last_ns = settled_ns

    def _enough(self) -> bool:
        return (self.steps >= _FEWEST_STEPS and self.elapsed_ns >= self.wanted_ns) or (
            self.steps >= _FEWEST_LONG_STEPS and self.elapsed_ns >= max(_LONG_NS, self.wanted_ns)
        )
