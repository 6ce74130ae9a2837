"""What a cache buys, once it is full."""

from __future__ import annotations

from pipediag.facts.pipeline import delay_ms, downstream, measured_at
from pipediag.facts.step import class_ms
from pipediag.rules.bounds import less_input
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation


def gain_of_cache(session: Session, op: Operation) -> float | None:
    """Return the most that a cache buys once it is full: the delays of the operation and of all
    above it end."""
    cost_at = measured_at(session, op).id
    left = sum(
        delay_ms(session, other) or 0.0
        for other in downstream(session, op)
        if measured_at(session, other).id != cost_at
    )
    wait_ms = class_ms(session, ["input_wait"])
    return less_input(session, max(0.0, wait_ms - left), on_cpu=False)
