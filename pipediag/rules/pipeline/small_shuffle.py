"""A shuffle that hardly shuffles: too small a buffer, or batches instead of examples."""

from __future__ import annotations

from pipediag.facts.helper_made import gives_batches_alone
from pipediag.facts.limits import Threshold
from pipediag.facts.pipeline import (
    call_name,
    downstream,
    following_batch,
    framework_call,
    operations,
    upstream,
)
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import BATCHING
from pipediag.vocabulary import Scalar

COVERAGE = Threshold(
    "buffer size",
    1.0,
    "% of the elements",
    "own choice: an element then moves by about a hundredth of the data, so sorted data stays "
    "sorted",
)
META = Meta(
    id="small-shuffle",
    name="Small shuffle",
    title_failed="A shuffle is too small to mix the data",
    title_passed="Shuffles mix the data",
    looks_at="Each shuffle's buffer against the number of elements and the batch behind it, and "
    "whether it comes after a batch. Where the number is not known before the pipeline runs, as "
    "behind an interleave of files, by the batches of the epochs that were seen.",
    why="An element can come early by no more than the buffer's size. A buffer no larger than a "
    "batch mixes within batches only, and after a batch whole batches change places. This is about "
    "how well the model learns, not about speed.",
    edit="A larger buffer, before the batch; shuffle file names too.",
    cost="Memory for the buffer's elements, and time to fill it before the first step.",
    bound="None: quality, not speed.",
    needs=("loop", "pipeline"),
    thresholds=(COVERAGE,),
    severity="warn",
    effect_on_results="same up to order or rounding",
    subject="quality",
    untried="It is about how well the model learns, which a trial of speed can't tell.",
)

_KEEPS_NUMBER = ("map", "shuffle", "prefetch", "cache", "with_options")
_UNKNOWN = (
    "How many elements reach the shuffle is not known: nothing says it before the pipeline runs, "
    "and no epoch of it ended while the loop was watched."
)


def check(session: Session) -> list[Finding]:
    """One finding for each shuffle."""
    # A helper mixes the names of the files itself before its shuffle does the rest.
    shuffles = [op for op in operations(session, "shuffle") if not op.made_by_framework]
    if not shuffles:
        return [META.finding("not-applicable", "The pipeline has no shuffle.")]
    return [_finding(session, op) for op in shuffles]


def _finding(session: Session, op: Operation) -> Finding:
    above = upstream(session, op)
    buffer = op.parameters.get("buffer_size")
    count, at_most = _counts(session, op, above)
    evidence: dict[str, Scalar] = {"buffer_size": buffer, "elements": count}
    if not isinstance(buffer, int) or buffer < 0:
        return META.finding(
            "inconclusive", "The buffer's size is not known.", op=op, evidence=evidence
        )
    if any(other.kind == "shuffle" for other in above) or (
        at_most is not None and buffer >= at_most
    ):
        return META.finding("pass", "", op=op, evidence=evidence)
    problem = _problem(session, op, buffer, count)
    if problem is not None:
        return META.finding("fail", problem, op=op, evidence=evidence)
    if at_most is None or buffer < at_most * COVERAGE.value / 100.0:
        return META.finding("not-applicable", _UNKNOWN, op=op, evidence=evidence)
    return META.finding("pass", "", op=op, evidence=evidence)


def _problem(session: Session, op: Operation, buffer: int, count: int | None) -> str | None:
    batch = next((other for other in upstream(session, op) if other.kind in BATCHING), None)
    if batch is not None and not any(o.kind == "unbatch" for o in upstream(session, op)):
        if batch.made_by_framework:
            single = (
                f"Put `.unbatch()` behind {framework_call(batch)}"
                if gives_batches_alone(batch)
                else f"Pass `batch_size=None` to {framework_call(batch)}"
            )
            return (
                f"{single}, and put {call_name(op)} and then a `batch` behind it: as it is, whole "
                "batches change places and their examples stay together."
            )
        return (
            f"Move {call_name(op)} above {call_name(batch)}: behind it, whole batches change "
            "places and their examples stay together."
        )
    behind = following_batch(session, op)
    size = behind.parameters.get("batch_size") if behind else None
    if isinstance(size, int) and buffer <= size and (count is None or count > size):
        return (
            f"The buffer of {call_name(op)} ({buffer}) is no larger than a batch ({size}): take "
            "several times the batch, or all elements where they fit."
        )
    if count is not None and buffer < count * COVERAGE.value / 100.0:
        return (
            f"The buffer of {call_name(op)} holds {buffer} of {count} elements: make it larger, or "
            "shuffle file names or indices before it."
        )
    return None


def _counts(
    session: Session, op: Operation, above: list[Operation]
) -> tuple[int | None, int | None]:
    """Return how many elements reach the shuffle in one pass, at least and at most.

    Where nothing says it before it runs, as behind an interleave of files, the epochs that were
    seen do.
    """
    once = (other for other in above if other.kind != "repeat" and other.cardinality != -1)
    nearest = next(once, None)
    if nearest is not None and nearest.cardinality is not None:
        return nearest.cardinality, nearest.cardinality
    return _counted_in_epochs(session, op)


def _counted_in_epochs(session: Session, op: Operation) -> tuple[int | None, int | None]:
    """Return the examples of an epoch: each iterator but the last has gone through one.

    None where an epoch's examples are others than those that are shuffled.
    """
    loop = session.diagnosed_loop()
    behind = downstream(session, op)
    kept = all(other.kind in (*_KEEPS_NUMBER, *BATCHING) for other in behind)
    if loop is None or loop.batch_size is None or loop.iterators < 2 or not kept:
        return None, None
    if operations(session, "repeat"):
        return None, None
    examples = loop.steps * loop.batch_size
    return examples // loop.iterators, examples // (loop.iterators - 1)
