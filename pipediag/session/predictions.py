"""Calls of Keras' `predict` on little data, timed against `predict_on_batch`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Prediction:
    """One line that calls `predict` again and again, on data that fits in one batch.

    A plain dataclass, because the user's process makes it.
    """

    file: str
    line: int
    rows: int
    """Of the data of the last call that was timed."""
    predict_ms: list[float] = field(default_factory=list)
    """Calls of the script's own."""
    on_batch_ms: list[float] = field(default_factory=list)
    """`predict_on_batch` on the same data, right after each of these calls."""
    lacking: str | None = None
    """Why it was not timed, or not to the end, as a sentence."""

    @property
    def is_timed(self) -> bool:
        """Return True if there are enough pairs for an interval."""
        return self.lacking is None and len(self.on_batch_ms) >= FEWEST_PAIRS


FEWEST_PAIRS = 5
"""As many rounds as a trial has before its first decision."""
