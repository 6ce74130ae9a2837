"""What is followed over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipediag.comparison import values
from pipediag.session.model import Session


@dataclass(frozen=True)
class Metric:
    """A number of a session; less is better."""

    name: str
    label: str
    unit: str
    value: Callable[[Session], float | str]

    def of(self, session: Session) -> float | None:
        """None where the session does not have it."""
        found = self.value(session)
        return None if isinstance(found, str) else found


METRICS = (
    Metric("step-ms", "Step", "ms", values.step_ms),
    Metric("input-wait-percent", "Input wait", "% of the step", values.step_percent(values.INPUT)),
    Metric("overhead-percent", "Overhead", "% of the step", values.step_percent(values.OVERHEAD)),
    Metric("run-s", "Run", "s", values.run_s),
)
