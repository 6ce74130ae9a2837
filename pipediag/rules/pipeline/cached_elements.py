"""How many elements a cache would hold, of all the data and in a trial."""

from __future__ import annotations

import math

from pipediag.facts.epochs import fills_a_shuffle
from pipediag.facts.pipeline import keeps_elements, upstream
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES

FILL_S = 2.0
LEAST_BATCHES = 8


def elements_to_cache(session: Session, op: Operation) -> int | None:
    """What two seconds make at the rate of this run; at least eight batches, at most all.

    All where none pass in a step, as they do where a shuffle has taken them before.
    """
    if session.steps is None or not op.elements:
        return elements_of_a_pass(session, op) if fills_a_shuffle(session, op) else None
    in_time = FILL_S * 1000.0 / session.steps.mean_ms * op.elements
    wanted = math.ceil(max(in_time, LEAST_BATCHES * op.elements))
    number = elements_of_a_pass(session, op)
    return wanted if number is None else min(wanted, number)


def elements_of_a_pass(session: Session, op: Operation) -> int | None:
    """Elements of one pass at this operation, or as many as reach it at most; None if unknown."""
    for other in [op, *upstream(session, op)]:
        if other.kind != "repeat" and other.cardinality is not None and other.cardinality >= 0:
            return other.cardinality
        if other.kind not in CACHES and not keeps_elements([other]):
            return None
    return None
