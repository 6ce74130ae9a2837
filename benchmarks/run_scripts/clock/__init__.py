"""A script's own clock, which the script tells what part of its run begins.

Import it before all else, as it starts then. When the process ends, the seconds of each part go as
JSON to the file that RUN_LEDGER_STAMPS names; without that variable nothing is written.
"""

from __future__ import annotations

import atexit
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "RUN_LEDGER_STAMPS"


class RunClock:
    """Seconds by part, in legs: each ends with a training, the last one with the run."""

    def __init__(self) -> None:
        self._began = self._since = time.monotonic()
        self._part = "startup"
        self._legs: list[dict[str, float]] = [{}]

    def at(self, part: str) -> float:
        """Begin a part of the run; return the moment."""
        now = time.monotonic()
        self._add(self._part, now - self._since)
        self._part, self._since = part, now
        return now

    def imported(self) -> None:
        """Begin the script's own code, after its imports."""
        self.at("before_training")

    def move(self, seconds: float, source: str, target: str) -> None:
        """Move seconds of this leg from one part to another, at most those that are there."""
        self.at(self._part)
        moved = max(0.0, min(seconds, self._legs[-1].get(source, 0.0)))
        self._add(source, -moved)
        self._add(target, moved)

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Count what runs in the block as evaluation, predictions included."""
        part = self._part
        self.at("evaluation")
        yield
        self.at(part)

    def training_begins(self) -> None:
        """Begin a training; what followed the last one is between two now."""
        again = self._part == "after_training"
        self.at("between_loops" if again else self._part)
        leg = self._legs[-1]
        if "after_training" in leg:
            leg["between_loops"] = leg.pop("after_training")

    def training_over(self) -> None:
        """End a leg."""
        self.at("after_training")
        self._legs.append({})

    def write(self, path: Path) -> None:
        """Write the seconds of each leg, and the begin of the run by `time.monotonic()`."""
        self.at(self._part)
        stamps = {"began": self._began, "legs": self._legs}
        path.write_text(json.dumps(stamps), encoding="utf-8")

    def _add(self, part: str, seconds: float) -> None:
        leg = self._legs[-1]
        leg[part] = leg.get(part, 0.0) + seconds


run = RunClock()
if VARIABLE in os.environ:
    atexit.register(run.write, Path(os.environ[VARIABLE]))
