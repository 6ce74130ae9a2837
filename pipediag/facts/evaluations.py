"""The pipelines of loops that evaluate: what they do anew in each evaluation, as written.

What their operations cost was not measured; what a step waits for them in all was, where the
evaluation is long enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipediag.facts.pipeline import differs_by_pass, upstream_of
from pipediag.session.ledger import RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Pipeline
from pipediag.session.recording import Prediction
from pipediag.tensorflow_names import BATCHING, CACHES, KEEPS_ELEMENTS, READERS, RUNS_A_FUNCTION

_PASSED_ON = ("prefetch", "with_options")
"""Behind which nothing need be cached that can be cached before them."""
_ORDERING = ("repeat", "shuffle")
"""Behind which a cache never ends, or freezes what it holds."""


@dataclass(frozen=True)
class SmallPrediction:
    """A line that calls `predict` on little data, and its rows of the ledger."""

    prediction: Prediction
    rows: tuple[RunPart, ...]

    @property
    def taken_s(self) -> float:
        return sum(row.seconds for row in self.rows)


def small_predictions(session: Session) -> list[SmallPrediction]:
    """Return the lines whose calls of `predict` were timed against `predict_on_batch`."""
    parts = session.run.parts if session.run is not None else []
    found = []
    for one in session.predictions:
        rows = tuple(
            row
            for row in parts
            if row.part == "evaluation" and (row.file, row.line) == (one.file, one.line)
        )
        if one.is_timed and rows:
            found.append(SmallPrediction(one, rows))
    return found


def loop_at(session: Session, row: RunPart) -> Loop | None:
    """Return the loop that evaluates at that line; a `fit` that validates has two loops there."""
    place = (row.file, row.line)
    return next(
        (one for one in session.loops if (one.file, one.line) == place and one.role != "training"),
        None,
    )


def wait_percent(loop: Loop) -> float | None:
    """Return the share of its steps that waits for input, in percent; None where not known."""
    seen = loop.evaluation
    if seen is None or seen.consumer_ms is None or seen.step_ms <= 0:
        return None
    return 100.0 * (1.0 - min(1.0, seen.consumer_ms / seen.step_ms))


def repeated_work(pipeline: Pipeline) -> Operation | None:
    """Return the last function of the user's, or reading, on the way to the loop.

    A cache behind it replaces all above it. None where a cache keeps it, or there is none.
    """
    for op in _chain(pipeline):
        if op.kind in CACHES:
            return None
        if not op.made_by_framework and op.kind in (*RUNS_A_FUNCTION, *READERS):
            return op
    return None


def cache_place(pipeline: Pipeline, work: Operation) -> Operation | None:
    """Return the last operation behind which a cache keeps this work.

    None where it would keep what differs from pass to pass, or would never end.
    """
    above = [work, *upstream_of(pipeline.ops, work)]
    if any(op.kind == "repeat" or differs_by_pass(op) for op in above):
        return None
    place: Operation | None = None
    for op in _chain(pipeline):
        if op.kind in _ORDERING or differs_by_pass(op):
            place = None
        elif place is None and op.kind not in _PASSED_ON:
            place = op
        if op.id == work.id:
            break
    return place


def shuffled_above(pipeline: Pipeline, place: Operation) -> bool:
    """Return True if a cache there would keep one order of what comes in another one each time."""
    return any(op.kind == "shuffle" for op in upstream_of(pipeline.ops, place))


def elements_of_a_batch(pipeline: Pipeline, place: Operation) -> int | None:
    """Return how many elements of this operation a batch of the loop takes, where known."""
    factor = 1
    for op in _chain(pipeline):
        if op.id == place.id:
            return factor
        if op.kind in BATCHING:
            size = op.parameters.get("batch_size")
            if not isinstance(size, int) or size <= 0:
                return None
            factor *= size
        elif op.kind not in KEEPS_ELEMENTS and op.kind != "take":
            return None
    return None


def held_bytes(place: Operation) -> int | None:
    """Return the size of a cache behind it; None where that is not known."""
    count, each = place.cardinality, place.element_bytes
    return count * each if count is not None and count >= 0 and each is not None else None


def _chain(pipeline: Pipeline) -> Iterator[Operation]:
    """Yield operations from the loop up to where several datasets meet, or to the source."""
    path = [op for op in pipeline.ops if op.inside_function_of is None]
    by_id = {op.id: op for op in path}
    op = path[-1] if path else None
    while op is not None:
        yield op
        op = by_id.get(op.parent_ids[0]) if len(op.parent_ids) == 1 else None
