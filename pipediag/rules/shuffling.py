"""Shuffle buffers: too small to mix, and how small they may become."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from pipediag.facts.limits import Threshold
from pipediag.facts.pipeline import (
    call_name,
    downstream,
    following_batch,
    framework_call,
    operations,
    place_name,
    upstream,
)
from pipediag.rules.rule import Rule
from pipediag.session.edits import Edit, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING

COVERAGE = Threshold(
    "buffer size", 1.0, "% of the elements", "own choice: sorted data stays sorted"
)
SMALL_SHUFFLE = Rule(
    id="small-shuffle",
    title="Shuffle with a buffer that mixes the data",
    why="An element comes early by no more than the buffer's size, and after a batch whole batches "
    "change places.",
    fix="A larger buffer, before the batch; shuffle file names too. That takes memory, and time to "
    "fill before the first step.",
    needs=("loop", "pipeline"),
    thresholds=(COVERAGE,),
    effect="same up to order or rounding",
    subject="quality",
    untried="It is about how well the model learns, which a trial of speed can't tell.",
)
_KEEPS_NUMBER = ("map", "shuffle", "prefetch", "cache", "with_options")


@SMALL_SHUFFLE.found_by
def check_small_shuffle(session: Session) -> Iterator[Finding]:
    """Yield a finding on each shuffle of the script's own that mixes too little.

    A helper mixes the names of the files itself before its shuffle does the rest.
    """
    for op in operations(session, "shuffle"):
        above, size = upstream(session, op), op.parameters.get("buffer_size")
        if op.made_by_framework:
            continue
        count, at_most = _counts(session, op, above)
        evidence = {"buffer_size": size, "elements": count}
        finding = partial(SMALL_SHUFFLE.finding, op=op, evidence=evidence)
        if not isinstance(size, int) or size < 0:
            yield finding("inconclusive", "The buffer's size is not known.")
            continue
        holds_all = at_most is not None and size >= at_most
        shuffled_before = any(other.kind == "shuffle" for other in above)
        problem = _problem(session, op, above, size, count)
        if problem is not None and not holds_all and not shuffled_before:
            yield finding("fail", problem)


def _problem(
    session: Session, op: Operation, above: list[Operation], size: int, count: int | None
) -> str | None:
    batch = next((other for other in above if other.kind in BATCHING), None)
    if batch is not None and not any(other.kind == "unbatch" for other in above):
        how = f"Move {call_name(op)} before {call_name(batch)}"
        if batch.made_by_framework:
            how = (
                f"Let {framework_call(batch)} give single elements (`batch_size=None`, or "
                f"`.unbatch()` after it), and put {call_name(op)} and then a `batch` after it"
            )
        return f"{how}: as it is, whole batches change places and their examples stay together."
    behind = following_batch(session, op)
    rows = behind.parameters.get("batch_size") if behind else None
    if isinstance(rows, int) and size <= rows and (count is None or count > rows):
        return (
            f"Give {call_name(op)} a buffer of several times the batch, or of all elements where "
            f"they fit: it holds {size}, no more than a batch of {rows}."
        )
    if count is not None and size < count * COVERAGE.value / 100.0:
        return (
            f"Give {call_name(op)} a larger buffer, or shuffle file names or indices before it: it "
            f"holds {size} of {count} elements."
        )
    return None


def _counts(
    session: Session, op: Operation, above: list[Operation]
) -> tuple[int | None, int | None]:
    """Return how many elements reach the shuffle in one pass, at least and at most.

    Where nothing says it before it runs, as after an interleave of files, the epochs that were
    seen do: each iterator but the last has gone through one. None where an epoch's examples are
    others than those that are shuffled.
    """
    once = (other for other in above if other.kind != "repeat" and other.cardinality != -1)
    nearest = next(once, None)
    if nearest is not None and nearest.cardinality is not None:
        return nearest.cardinality, nearest.cardinality
    loop, behind = session.diagnosed_loop(), downstream(session, op)
    kept = all(other.kind in (*_KEEPS_NUMBER, *BATCHING) for other in behind)
    if loop is None or loop.batch_size is None or loop.iterators < 2 or not kept:
        return None, None
    if operations(session, "repeat"):
        return None, None
    examples = loop.steps * loop.batch_size
    return examples // loop.iterators, examples // (loop.iterators - 1)


PART = 10
"""The buffer becomes a tenth. Own choice: the fill is then next to nothing of what it was."""
LEAST_BATCHES = 8
"""Batches that it still holds. Own choice: fewer would hardly mix more than one batch does."""
ENOUGH_MIXED = "if the model learns as well from data that is mixed less"


def smaller_size(session: Session, shuffle: Operation) -> int | None:
    """Return a tenth, but some batches and enough to mix the data; None where that is hardly less.

    A buffer holds no more than there is; an endless repeat above it brings more.
    """
    buffer, behind = buffer_size(shuffle), following_batch(session, shuffle)
    batch = behind.parameters.get("batch_size") if behind is not None else None
    if buffer is None or buffer <= 0 or not isinstance(batch, int):
        return None
    above = upstream(session, shuffle)
    count = above[0].cardinality or 0 if above else 0
    held = min(buffer, count) if count > 0 else buffer
    enough = math.ceil(count * COVERAGE.value / 100.0)
    size = max(held // PART, LEAST_BATCHES * batch, enough)
    return size if size <= held // 2 else None


def buffer_size(shuffle: Operation) -> int | None:
    """Return how many elements it holds at most, as it ran or as it is written."""
    size = shuffle.buffer_size or shuffle.parameters.get("buffer_size")
    return size if isinstance(size, int) else None


def smaller_buffer(session: Session, shuffle: Operation, rule: str) -> Edit | None:
    """Return a smaller buffer, tried in whole epochs, as steps alone don't show a fill."""
    size = smaller_size(session, shuffle)
    if size is None:
        return None
    return Edit(
        id=f"{rule}:buffer:{shuffle.id}",
        label=f"a buffer of {size} for the {place_name(shuffle)}",
        changes=(SetParameters(shuffle.id, {"buffer_size": size}),),
        check="shape",
        caveat="It counts time; how well the model learns from data that is mixed less is not "
        "measured.",
        whole_epoch=True,
    )
