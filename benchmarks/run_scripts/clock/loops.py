"""Clock of a training loop that the script writes itself."""

from __future__ import annotations

from collections.abc import Hashable
from statistics import median

from clock import RunClock


class LoopClock:
    """Clock of epochs and steps; what the first step takes more than the others is compilation.

    What follows a step belongs to the loop's steps if another batch comes of it. After the last one
    an iterator is found to be empty and goes, which is a part of the epoch's end.
    """

    def __init__(self, run: RunClock) -> None:
        self._run = run
        self._handed = 0.0
        self._stepped: float | None = None
        self._steps: dict[Hashable, list[float]] = {}
        run.training_begins()

    def epoch_begins(self) -> None:
        """Begin an epoch, whose first batch is asked for next."""
        self._run.at("epoch_start")
        self._stepped = None

    def batch_in_hand(self) -> None:
        """Begin a step."""
        self._handed = self._run.at("steps")
        if self._stepped is not None:
            self._run.move(self._handed - self._stepped, "epoch_end", "steps")

    def step_over(self, kind: Hashable = None) -> None:
        """End a step; the first of each kind, such as a shape, compiles a function."""
        self._stepped = self._run.at("epoch_end")
        self._steps.setdefault(kind, []).append(self._stepped - self._handed)

    def epoch_over(self) -> None:
        """End an epoch."""
        self._run.at("epoch_end")
        self._stepped = None

    def over(self) -> None:
        """End the loop."""
        self._run.at("epoch_end")
        usual = median(seconds for kind in self._steps.values() for seconds in kind)
        for first, *later in self._steps.values():
            self._run.move(first - (median(later) if later else usual), "steps", "compile")
        self._run.training_over()
